package changelog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// BoundKind says how a Bound names a state.
type BoundKind uint8

// Kinds of bounds. The zero Bound is BoundNull.
const (
	BoundNull     BoundKind = iota // from: the beginning; to: the state current at the cut
	BoundSnapshot                  // a snapshot id
	BoundTime                      // the state at an instant
	BoundSeq                       // the state after a commit seq, or a place inside it
	BoundTag                       // tag:x
	BoundBranch                    // branch:x
	BoundEarliest                  // the oldest state that can still be read
	BoundNow                       // the state current at the cut
)

// Bound is one end of a window, or the state a read is pinned to, as a user writes it. The zero value is NULL.
type Bound struct {
	Kind     BoundKind
	Snapshot int64     // BoundSnapshot
	Time     time.Time // BoundTime
	Seq      uint64    // BoundSeq
	Ordinal  int32     // BoundSeq with HasRow
	Row      int64     // BoundSeq with HasRow
	HasRow   bool      // seq:N/ordinal/row
	Name     string    // BoundTag, BoundBranch
}

// Bounds without arguments.
var (
	Null     = Bound{}
	Earliest = Bound{Kind: BoundEarliest}
	Now      = Bound{Kind: BoundNow}
)

// SnapshotID returns the bound of a snapshot id.
func SnapshotID(id int64) Bound { return Bound{Kind: BoundSnapshot, Snapshot: id} }

// Timestamp returns the bound of the state at an instant.
func Timestamp(t time.Time) Bound { return Bound{Kind: BoundTime, Time: t} }

// Seq returns the bound of the state after commit seq n; with an ordinal and a row, the place after that row.
func Seq(n uint64, place ...int64) Bound {
	b := Bound{Kind: BoundSeq, Seq: n}
	if len(place) == 2 {
		b.Ordinal, b.Row, b.HasRow = int32(place[0]), place[1], true
	}
	return b
}

// Tag and Branch return the bound of a ref's head at the cut.
func Tag(name string) Bound    { return Bound{Kind: BoundTag, Name: name} }
func Branch(name string) Bound { return Bound{Kind: BoundBranch, Name: name} }

// byAncestry reports whether the bound names a snapshot rather than a place in the commit log.
func (b Bound) byAncestry() bool {
	return b.Kind == BoundSnapshot || b.Kind == BoundTag || b.Kind == BoundBranch
}

// String returns the text that ParseBound accepts; NULL for the zero Bound.
func (b Bound) String() string {
	switch b.Kind {
	case BoundSnapshot:
		return strconv.FormatInt(b.Snapshot, 10)
	case BoundTime:
		return b.Time.UTC().Format("2006-01-02 15:04:05.999999Z07:00")
	case BoundSeq:
		if b.HasRow {
			return fmt.Sprintf("seq:%d/%d/%d", b.Seq, b.Ordinal, b.Row)
		}
		return fmt.Sprintf("seq:%d", b.Seq)
	case BoundTag:
		return "tag:" + b.Name
	case BoundBranch:
		return "branch:" + b.Name
	case BoundEarliest:
		return "earliest"
	case BoundNow:
		return "now"
	}
	return "NULL"
}

// ParseBound reads a bound's text form, with timestamps that name no zone in UTC: digits (a snapshot id), seq:N,
// seq:N/ordinal/row, tag:x, branch:x, earliest, now, else a timestamp. Errors: ErrMalformedBound.
func ParseBound(text string) (Bound, error) { return ParseBoundIn(text, time.UTC) }

// ParseBoundIn is ParseBound with the zone of timestamps that name none.
func ParseBoundIn(text string, zone *time.Location) (Bound, error) {
	s := strings.TrimSpace(text)
	switch lower := strings.ToLower(s); {
	case s == "":
		return Bound{}, malformed(text, "it is empty")
	case lower == "earliest":
		return Earliest, nil
	case lower == "now", lower == "infinity":
		return Now, nil
	case lower == "-infinity":
		return Null, nil
	case strings.HasPrefix(lower, "seq:"):
		return parseSeq(text, s[len("seq:"):])
	case strings.HasPrefix(lower, "tag:"):
		return namedRef(text, Tag(s[len("tag:"):]))
	case strings.HasPrefix(lower, "branch:"):
		return namedRef(text, Branch(s[len("branch:"):]))
	case strings.Trim(s, "0123456789") == "":
		id, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return Bound{}, malformed(text, "the snapshot id does not fit a bigint")
		}
		return SnapshotID(id), nil
	}
	t, ok := parseTimestamp(s, zone)
	if !ok {
		return Bound{}, malformed(text, "it is no snapshot id, seq:, tag:, branch:, earliest, now or timestamp")
	}
	return Timestamp(t), nil
}

func namedRef(text string, b Bound) (Bound, error) {
	if b.Name == "" {
		return Bound{}, malformed(text, "the name is missing")
	}
	return b, nil
}

func parseSeq(text, rest string) (Bound, error) {
	parts := strings.Split(rest, "/")
	if len(parts) != 1 && len(parts) != 3 {
		return Bound{}, malformed(text, "a place is seq:N or seq:N/ordinal/row")
	}
	for _, p := range parts {
		if p == "" || strings.Trim(p, "0123456789") != "" {
			return Bound{}, malformed(text, "a seq, an ordinal and a row are digits")
		}
	}
	n, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return Bound{}, malformed(text, "the seq does not fit a bigint")
	}
	if len(parts) == 1 {
		return Seq(uint64(n)), nil
	}
	ord, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		return Bound{}, malformed(text, "the ordinal does not fit an integer")
	}
	row, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return Bound{}, malformed(text, "the row does not fit a bigint")
	}
	return Seq(uint64(n), ord, row), nil
}

// dateForms and clockForms are the ISO forms PostgreSQL prints and reads; Go's parser takes a fraction of a second after
// any of the clock forms by itself.
var (
	clockForms = []string{"", "15:04", "15:04:05"}
	zoneForms  = []string{"", "Z07:00", "Z0700", "Z07", "Z07:00:00"}
)

func parseTimestamp(s string, zone *time.Location) (time.Time, bool) {
	if zone == nil {
		zone = time.UTC
	}
	for _, suffix := range []string{" utc", " gmt", "utc", "gmt"} {
		if t, ok := strings.CutSuffix(strings.ToLower(s), suffix); ok {
			s, zone = strings.ToUpper(t), time.UTC
			break
		}
	}
	date, clock, _ := strings.Cut(strings.Replace(s, "T", " ", 1), " ")
	clock = strings.TrimSpace(clock)
	// "12:00:00 +02" and "12:00:00+02" are one form.
	if i := strings.LastIndexAny(clock, "+-Zz"); i > 0 {
		clock = strings.TrimSpace(clock[:i]) + strings.ToUpper(clock[i:])
	}
	for _, c := range clockForms {
		for _, z := range zoneForms {
			if c == "" && (z != "" || clock != "") {
				continue
			}
			layout, value := "2006-01-02", date
			if c != "" {
				layout, value = layout+" "+c+z, value+" "+clock
			}
			if t, err := time.ParseInLocation(layout, value, zone); err == nil {
				return t, true
			}
		}
	}
	return time.Time{}, false
}

func malformed(text, why string) error {
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	return &Error{
		Err:     ErrMalformedBound,
		Message: fmt.Sprintf("malformed bound %q: %s", text, why),
		Hint:    "A bound is a snapshot id, a timestamp, seq:N, seq:N/ordinal/row, tag:name, branch:name, earliest or now.",
	}
}
