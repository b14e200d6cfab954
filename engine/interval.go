package engine

import (
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// Iceberg has no interval: one is stored as an ISO 8601 string. These DuckDB functions are the way out and in.
const (
	intervalFromISO = "skade_interval_from_iso"
	intervalToISO   = "skade_interval_to_iso"
)

func intervalFunctions() []pgsql.GoFunc {
	return []pgsql.GoFunc{
		{Name: intervalFromISO, Args: []string{"VARCHAR"}, Ret: "INTERVAL", Fn: func(args []pgsql.Value) (pgsql.Value, error) {
			v, err := parseStoredInterval(args[0].S)
			if err != nil {
				return pgsql.Value{}, err
			}
			return pgsql.Value{I: v.Micros, Months: v.Months, Days: v.Days}, nil
		}},
		{Name: intervalToISO, Args: []string{"INTERVAL"}, Ret: "VARCHAR", Fn: func(args []pgsql.Value) (pgsql.Value, error) {
			a := args[0]
			return pgsql.Value{S: string(pgenc.AppendIntervalISO(nil, pgenc.IntervalValue{Months: a.Months, Days: a.Days, Micros: a.I}))}, nil
		}},
	}
}

// parseStoredInterval reads an interval's stored form.
func parseStoredInterval(text string) (pgenc.IntervalValue, error) {
	v, err := pgenc.Decode(pgtype.Interval, pgenc.Text, []byte(text), pgenc.Style{})
	if err != nil {
		return pgenc.IntervalValue{}, err
	}
	return v.(pgenc.IntervalValue), nil
}
