// Package failoverbench measures how long a pair is without a leader after a crash,
// ours against client-go's leaderelection, side by side.
//
// # What is measured
//
// A round is one pair on one lease. The first replica leads, the second watches,
// the first crashes at a random instant, and the round ends when the second has
// acquired. Every contestant plays the same rounds: the same starts and the same
// crash instants, drawn from one seed.
//
//   - Crash: nothing is sent any more, no answer is heard, nothing is released. A
//     request that was on its way arrives, as it does when a process is killed.
//   - Limit: ttl less the age of the last write of the crashed one that landed, at
//     the crash. Nobody may take over earlier, counted from the crash.
//   - Failover: from the crash to the confirmed acquisition, the moment at which the
//     survivor has the store's answer. Seal and start of the work are reported
//     apart, they are not in it.
//   - Requests are counted at the store, for leader and standby apart, over a
//     stretch in which nothing happens.
//
// # What it guarantees
//
// In memory every request takes exactly its latency, half of it before and half
// after the store's one instant, plus what the machine's timers are late, which the
// report says. All contestants have the same store, latencies and conditions; ours
// has to read its request object and the fence of a checkpoint document before it
// claims, and has both here. Over HTTP the landing is taken before the request is
// handed to the server, so that a limit is never too long.
//
// # What it does not guarantee
//
// Crashes of machines, partitions, freezes and planned stops are not in it: e2e
// measures those on real processes. A network whose latency varies is not either.
package failoverbench
