// Package history judges what a fault proxy, canaries and a test saw of one run
// of several replicas.
//
// # What is judged
//
// By what the store answered, not by what replicas believed; numbers are those of
// design.md, section 10:
//
//   - Order. The accepted writes of the lease and of the checkpoint document form one
//     chain each: every one was made on the version that the one before made. Two
//     writes accepted on one version, or one without a condition, is a store (or a
//     way to it) without conditional writes.
//   - I2. Along the chain of the lease every new term has a higher epoch, a term is
//     one replica's, and a released term holds no more.
//   - I3. Along the chain of the document a write carries the pair that is sealed, or
//     seals a higher one that the lease was given to before; it comes from the replica
//     of that term; and the canary's position is committed by the sealed term.
//   - I6. The position does not go back and no checkpoint disappears, along the chain.
//   - I1, I4. No act of an older term after the first act of a newer one, none later
//     than one ttl after the last accepted renewal of its term, none before its seal:
//     except acts within 200 ms (and what the machine was late) after the end of
//     a freeze of the whole replica.
//   - No number is missing in the stream; numbers that occur twice are counted.
//   - Each of the two objects is a linearizable register, as Porcupine sees what
//     callers were told. An operation without a definite answer has no end; that it
//     had an effect is known from the store.
//
// # Limits
//
// A proxy sees what passes it: a writer that goes to the store by another way breaks
// the chain. Acts are what canaries print. A load may, with versitygw, show newer data
// beside the older version; it is counted, and judged by its version.
package history
