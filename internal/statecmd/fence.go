package statecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

// repairPlan decides which epoch a repaired fence has. wanted is 0 if the user
// names none. Nothing to do is epoch 0 without an error. leases are known only
// once they were read.
func repairPlan(object string, found, damaged bool, readable int64, leases []Sight, wanted int64) (epoch int64, err error) {
	switch {
	case !found:
		return 0, fmt.Errorf("%s does not exist: there is no fence to repair; the next term makes the document", object)
	case wanted < 0 || wanted > checkpoint.MaxEpoch:
		return 0, usage("--epoch %d: an epoch is between 1 and %d", wanted, checkpoint.MaxEpoch)
	case !damaged && (wanted == 0 || wanted == readable):
		return 0, nil
	}
	floor, who := readable, object
	for _, l := range leases {
		if l.Record.Epoch > floor {
			floor, who = l.Record.Epoch, "the lease "+l.Lease
		}
	}
	switch {
	case wanted == 0 && floor == 0:
		return 0, fmt.Errorf("neither %s nor a lease tells an epoch; give --epoch N, larger than every epoch this document ever saw: the metric sf2loki_ha_epoch, the log lines of terms, or the history of a backup of the lease tell", object)
	case wanted != 0 && wanted < floor:
		return 0, fmt.Errorf("--epoch %d is lower than %d, which %s has, and an epoch never goes back: a lower one would let a stale leader in; the next term of the pair gets an epoch above it by itself, so that there is nothing to lower", wanted, floor, who)
	}
	return max(wanted, floor), nil
}

// RepairFence makes damaged reserved keys sound again, or raises the epoch of
// sound ones to wanted; 0 names none.
func (c *Command) RepairFence(ctx context.Context, wanted int64) (err error) {
	d, err := openConfigured(ctx, c.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	result := Result{Action: "repair-fence", Object: d.object}
	var epoch int64
	out, err := c.apply(ctx, d, change{
		fence: true,
		check: func(snap checkpoint.Snapshot, leases []Sight) (bool, error) {
			result.Checkpoints = len(userKeys(snap.Document))
			var err error
			epoch, err = repairPlan(d.object, snap.Found, snap.Damage != nil, snap.Fence.Epoch, leases, wanted)
			if leases == nil && epoch == 0 && snap.Damage != nil && wanted == 0 {
				return false, nil // the lease may tell
			}
			if err != nil {
				return false, err
			}
			f := snap.Fence
			if snap.Damage == nil && epoch == 0 {
				result.Fence = fenceText(f)
				result.what = fmt.Sprintf("the fence of %s is sound: epoch %d, lease %s; nothing to repair", d.object, f.Epoch, orNone(f.Lease))
				if f.Epoch == 0 {
					result.what = fmt.Sprintf("%s was never sealed: there is no fence to repair", d.object)
				}
				return true, nil
			}
			f.Epoch = epoch
			if f.Lease == "" {
				f.Lease = d.lease
			}
			result.Fence, result.Changed = fenceText(f), true
			result.what = "; the next term gets a higher epoch, every session of before is fenced"
			return false, nil
		},
		write: func(ctx context.Context, snap checkpoint.Snapshot) (bool, error) {
			if snap.Damage != nil {
				c.note("%v", snap.Damage)
			}
			f, err := d.store.RepairFence(ctx, snap, epoch)
			result.Fence = fenceText(f)
			return err == nil, err
		},
	})
	if err != nil {
		return err
	}
	result.Waits = out.waits
	return c.tell(result)
}

// Adopt hands the document of another lease over to the configured one.
func (c *Command) Adopt(ctx context.Context) (err error) {
	d, err := openConfigured(ctx, c.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	result := Result{Action: "adopt", Object: d.object}
	out, err := c.apply(ctx, d, change{
		fence: true,
		check: func(snap checkpoint.Snapshot, _ []Sight) (bool, error) {
			f := snap.Fence
			result.Checkpoints = len(userKeys(snap.Document))
			switch {
			case snap.Damage != nil:
				return false, snap.Damage
			case !snap.Found:
				return false, fmt.Errorf("%s does not exist: there is nothing to adopt; the next term makes the document", d.object)
			case f.Lease == "" || f.Lease == d.lease:
				result.Fence = fenceText(f)
				result.what = fmt.Sprintf("%s belongs to no other lease (epoch %d, lease %s); nothing to adopt", d.object, f.Epoch, orNone(f.Lease))
				return true, nil
			}
			result.what = fmt.Sprintf(", adopted from the lease %s, whose sessions are fenced", f.Lease)
			f.Lease = d.lease
			result.Fence, result.Changed = fenceText(f), true
			return false, nil
		},
		write: func(ctx context.Context, snap checkpoint.Snapshot) (bool, error) {
			f, err := d.store.Adopt(ctx, snap)
			result.Fence = fenceText(f)
			return err == nil, err
		},
	})
	if err != nil {
		return err
	}
	result.Waits = out.waits
	return c.tell(result)
}
