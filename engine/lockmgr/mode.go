package lockmgr

// Mode is how something is locked. Modes of tables and advisory locks are PostgreSQL's (lockdefs.h), with its numbers.
type Mode uint8

// Modes of tables.
const (
	AccessShare Mode = iota + 1
	RowShare
	RowExclusive
	ShareUpdateExclusive
	Share
	ShareRowExclusive
	Exclusive
	AccessExclusive
)

// Modes of rows: those of SELECT … FOR, and what UPDATE and DELETE hold on what they wrote (WriteKey when a key is changed or
// gone).
const (
	ForKeyShare Mode = iota + 9
	ForShare
	ForNoKeyUpdate
	ForUpdate
	Write
	WriteKey
	firstIntent
)

// intent is the mode in which a table's rows are locked before one row is.
func (m Mode) intent() Mode { return m + (firstIntent - ForKeyShare) }

func (m Mode) isIntent() bool { return m >= firstIntent }

const numModes = firstIntent + (firstIntent - ForKeyShare)

func (m Mode) bit() uint32 { return 1 << m }

func bits(modes ...Mode) (b uint32) {
	for _, m := range modes {
		b |= m.bit()
	}
	return b
}

// conflicts[m] are the modes that another owner must not hold beside m. The table modes are PostgreSQL's LockConflicts.
var conflicts = func() (c [numModes]uint32) {
	c[AccessShare] = bits(AccessExclusive)
	c[RowShare] = bits(Exclusive, AccessExclusive)
	c[RowExclusive] = bits(Share, ShareRowExclusive, Exclusive, AccessExclusive)
	c[ShareUpdateExclusive] = bits(ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive)
	c[Share] = bits(RowExclusive, ShareUpdateExclusive, ShareRowExclusive, Exclusive, AccessExclusive)
	c[ShareRowExclusive] = bits(RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive)
	c[Exclusive] = bits(RowShare, RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive)
	c[AccessExclusive] = bits(AccessShare, RowShare, RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive)
	c[ForKeyShare] = bits(ForUpdate, WriteKey)
	c[ForShare] = bits(ForNoKeyUpdate, ForUpdate, Write, WriteKey)
	c[ForNoKeyUpdate] = bits(ForShare, ForNoKeyUpdate, ForUpdate, Write, WriteKey)
	c[ForUpdate] = bits(ForKeyShare, ForShare, ForNoKeyUpdate, ForUpdate, Write, WriteKey)
	c[Write] = bits(ForShare, ForNoKeyUpdate, ForUpdate)
	c[WriteKey] = bits(ForKeyShare, ForShare, ForNoKeyUpdate, ForUpdate)
	for m := ForKeyShare; m < firstIntent; m++ { // an intention conflicts with locks on all rows, never with another intention
		for o := ForKeyShare; o < firstIntent; o++ {
			if c[m]&o.bit() != 0 {
				c[m.intent()] |= o.bit()
			}
		}
	}
	for m := ForKeyShare; m < firstIntent; m++ {
		for o := ForKeyShare; o < firstIntent; o++ {
			if c[o.intent()]&m.bit() != 0 {
				c[m] |= o.intent().bit()
			}
		}
	}
	return c
}()

// covers reports whether whoever holds the modes of mask needs no lock in mode m.
func covers(mask uint32, m Mode) bool {
	for h := AccessShare; h < numModes; h++ {
		if mask&h.bit() != 0 && conflicts[m]&^conflicts[h] == 0 {
			return true
		}
	}
	return false
}

var modeNames = [numModes]string{
	"", "AccessShareLock", "RowShareLock", "RowExclusiveLock", "ShareUpdateExclusiveLock", "ShareLock", "ShareRowExclusiveLock",
	"ExclusiveLock", "AccessExclusiveLock",
	// PostgreSQL's names of the tuple locks that these are.
	"AccessShareLock", "RowShareLock", "ExclusiveLock", "AccessExclusiveLock", "ExclusiveLock", "AccessExclusiveLock",
}

// String is the mode's name in pg_locks.
func (m Mode) String() string {
	if m.isIntent() {
		m -= firstIntent - ForKeyShare
	}
	return modeNames[m]
}
