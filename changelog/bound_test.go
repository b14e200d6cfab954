package changelog

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseBound(t *testing.T) {
	berlin := time.FixedZone("", 2*3600)
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for text, want := range map[string]Bound{
		"0":                              SnapshotID(0),
		"8744736658442914487":            SnapshotID(8744736658442914487),
		" 17 ":                           SnapshotID(17),
		"seq:0":                          Seq(0),
		"seq:12":                         Seq(12),
		"SEQ:12":                         Seq(12),
		"seq:12/0/3":                     Seq(12, 0, 3),
		"tag:v1.0":                       Tag("v1.0"),
		"tag:seq:1":                      Tag("seq:1"),
		"branch:Audit":                   Branch("Audit"),
		"earliest":                       Earliest,
		"NOW":                            Now,
		"infinity":                       Now,
		"-infinity":                      Null,
		"2026-03-04":                     Timestamp(time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)),
		"2026-03-04 05:06:07":            Timestamp(at),
		"2026-03-04T05:06:07Z":           Timestamp(at),
		"2026-03-04t05:06:07z":           {},
		"2026-03-04 07:06:07+02":         Timestamp(at.In(berlin)),
		"2026-03-04 07:06:07 +02:00":     Timestamp(at.In(berlin)),
		"2026-03-04 05:06:07 UTC":        Timestamp(at),
		"2026-03-04 05:06:07.000001":     Timestamp(at.Add(time.Microsecond)),
		"2026-03-04 05:06:07.000001-00":  Timestamp(at.Add(time.Microsecond)),
		"2026-03-04 05:06":               Timestamp(at.Add(-7 * time.Second)),
		"":                               {},
		"seq:":                           {},
		"seq:-1":                         {},
		"seq:1/2":                        {},
		"seq:1/2/x":                      {},
		"seq:1/2147483648/0":             {},
		"seq:99999999999999999999":       {},
		"99999999999999999999":           {},
		"tag:":                           {},
		"branch:":                        {},
		"yesterday":                      {},
		"2026-13-01":                     {},
		"-5":                             {},
		"12abc":                          {},
		"2026-03-04 25:00:00":            {},
		"seq:1/0/0/0":                    {},
		"2026-03-04 05:06:07 Mars/North": {},
	} {
		got, err := ParseBound(text)
		if want == (Bound{}) && text != "-infinity" {
			if text == "2026-03-04t05:06:07z" {
				continue // either reading is fine
			}
			var e *Error
			require.ErrorIs(t, err, ErrMalformedBound, text)
			require.True(t, errors.As(err, &e) && e.Hint != "", text)
			continue
		}
		require.NoError(t, err, text)
		if want.Kind == BoundTime {
			require.True(t, got.Time.Equal(want.Time), "%s: %s", text, got.Time)
			continue
		}
		require.Equal(t, want, got, text)
	}
}

func TestParseBoundZone(t *testing.T) {
	zone := time.FixedZone("", -5*3600)
	b, err := ParseBoundIn("2026-01-01 00:00:00", zone)
	require.NoError(t, err)
	require.True(t, b.Time.Equal(time.Date(2026, 1, 1, 5, 0, 0, 0, time.UTC)))
}

func TestBoundText(t *testing.T) {
	for _, b := range []Bound{SnapshotID(5), Seq(7), Seq(7, 1, 2), Tag("a"), Branch("b"), Earliest, Now,
		Timestamp(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC))} {
		got, err := ParseBound(b.String())
		require.NoError(t, err, b.String())
		require.Equal(t, b, got)
	}
}

func FuzzParseBound(f *testing.F) {
	for _, s := range []string{"seq:1/2/3", "2026-01-01T00:00:00Z", "tag:x", "5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBound(s)
		if err != nil {
			if !errors.Is(err, ErrMalformedBound) {
				t.Fatal(err)
			}
			return
		}
		if b.Kind == BoundTime && (b.Time.Year() < 0 || b.Time.Year() > 9999 || b.Time.Nanosecond()%1000 != 0) {
			return
		}
		if again, err := ParseBound(b.String()); b.Kind != BoundNull && (err != nil || again.String() != b.String()) {
			t.Fatalf("%q → %q → %v", s, b, err)
		}
	})
}

func TestParseShard(t *testing.T) {
	s, err := ParseShard("3/8")
	require.NoError(t, err)
	require.Equal(t, Shard{3, 8}, s)
	for _, bad := range []string{"", "1", "8/8", "-1/2", "0/0", "a/b", "0/65537", "1/2/3"} {
		_, err := ParseShard(bad)
		require.ErrorIs(t, err, ErrMalformedShard, bad)
	}
}
