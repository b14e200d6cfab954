package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

var (
	// ErrLeaseHeld is returned by AcquireLease while another holder's lease runs.
	ErrLeaseHeld = errors.New("lease is held by another")
	// ErrLeaseLost is returned by RenewLease and ReleaseLease when the lease went to another holder, or was released.
	ErrLeaseLost = errors.New("lease was lost")
)

// Lease is a named claim. Token grows with every new holder: whoever writes under a lease compares it (fencing).
type Lease struct {
	Name    string
	Holder  string
	Token   uint64
	Expires time.Time
}

const (
	leaseKind    = 'e'
	leaseVersion = 1
)

// LeaseKey is the key of a lease, for compares.
func LeaseKey(name string) []byte { return append([]byte{leaseKind, ':'}, name...) }

// Encode returns the value of a lease's key: kind, version, token, expiry (microseconds since 1970), holder, CRC-32C.
func (l *Lease) Encode() []byte {
	b := []byte{leaseKind, leaseVersion}
	b = binary.BigEndian.AppendUint64(b, l.Token)
	b = binary.BigEndian.AppendUint64(b, uint64(l.Expires.UnixMicro()))
	b = append(b, l.Holder...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// DecodeLease reads what Encode wrote; ErrDamaged otherwise.
func DecodeLease(name string, b []byte) (*Lease, error) {
	if len(b) < 22 || b[0] != leaseKind || b[1] != leaseVersion ||
		crc32.Checksum(b[:len(b)-4], castagnoli) != binary.BigEndian.Uint32(b[len(b)-4:]) {
		return nil, fmt.Errorf("lease %q: %w", name, ErrDamaged)
	}
	return &Lease{
		Name:    name,
		Token:   binary.BigEndian.Uint64(b[2:]),
		Expires: time.UnixMicro(int64(binary.BigEndian.Uint64(b[10:]))),
		Holder:  string(b[18 : len(b)-4]),
	}, nil
}

// AcquireLease takes the lease when it is free, expired at now, or the holder's own. ErrLeaseHeld otherwise.
func AcquireLease(ctx context.Context, s Store, name, holder string, now time.Time, ttl time.Duration) (*Lease, error) {
	next := &Lease{Name: name, Holder: holder, Token: 1, Expires: now.Add(ttl)}
	cmp := Compare{Key: LeaseKey(name), Absent: true}
	old, err := s.Get(ctx, cmp.Key)
	switch {
	case err == nil:
		have, err := DecodeLease(name, old)
		if err != nil {
			return nil, err
		}
		if have.Holder != holder && now.Before(have.Expires) {
			return nil, fmt.Errorf("lease %q until %s: %w", name, have.Expires.UTC().Format(time.RFC3339), ErrLeaseHeld)
		}
		next.Token = have.Token + 1
		cmp = Compare{Key: cmp.Key, Value: old}
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	_, err = s.Apply(ctx, Tx{Compares: []Compare{cmp}, Ops: []Op{{Key: cmp.Key, Value: next.Encode()}}})
	if errors.Is(err, ErrCompareFailed) {
		return nil, fmt.Errorf("lease %q: %w", name, ErrLeaseHeld)
	}
	if err != nil {
		return nil, err
	}
	return next, nil
}

// RenewLease moves the deadline of a lease that is still the holder's. ErrLeaseLost otherwise.
func RenewLease(ctx context.Context, s Store, l *Lease, now time.Time, ttl time.Duration) (*Lease, error) {
	next := *l
	next.Expires = now.Add(ttl)
	return &next, swapLease(ctx, s, l, Op{Key: LeaseKey(l.Name), Value: next.Encode()})
}

// ReleaseLease ends a lease at once. The token is kept, so that the next holder's is larger. ErrLeaseLost when it went to another.
func ReleaseLease(ctx context.Context, s Store, l *Lease) error {
	free := Lease{Token: l.Token, Expires: time.UnixMicro(0)}
	return swapLease(ctx, s, l, Op{Key: LeaseKey(l.Name), Value: free.Encode()})
}

func swapLease(ctx context.Context, s Store, l *Lease, op Op) error {
	_, err := s.Apply(ctx, Tx{Compares: []Compare{{Key: LeaseKey(l.Name), Value: l.Encode()}}, Ops: []Op{op}})
	if errors.Is(err, ErrCompareFailed) {
		return fmt.Errorf("lease %q: %w", l.Name, ErrLeaseLost)
	}
	return err
}
