package engine

import (
	"strconv"
	"strings"
	"time"

	"github.com/nordisk/skade-pg/internal/pgenc"
)

// gucView is what every statement asks of the settings, read once a change of them.
type gucView struct {
	style            pgenc.Style // without Now
	asOf             string      // skade.as_of
	branch           string      // skade.branch
	application      string
	searchPath       string
	isolation        string // of the transaction, else default_transaction_isolation
	statementTimeout time.Duration
	idleTimeout      time.Duration // idle_session_timeout
	idleInTxTimeout  time.Duration // idle_in_transaction_session_timeout
}

func (g *gucs) derive() *gucView {
	v := &gucView{
		style: g.style(), asOf: g.value("skade.as_of"), branch: g.value("skade.branch"), application: g.value("application_name"),
		searchPath: g.value("search_path"), isolation: g.value("default_transaction_isolation"),
		statementTimeout: g.duration("statement_timeout"), idleTimeout: g.duration("idle_session_timeout"),
		idleInTxTimeout: g.duration("idle_in_transaction_session_timeout"),
	}
	if own, ok := g.cur["transaction_isolation"]; ok {
		v.isolation = own
	}
	return v
}

// style is how dates, intervals, floats and bytea are written and read.
func (g *gucs) style() pgenc.Style {
	st := pgenc.Style{Loc: g.loc, ByteaEscape: g.value("bytea_output") == "escape"}
	if n, err := strconv.Atoi(g.value("extra_float_digits")); err == nil && n < 1 {
		st.FloatDigits = 1 - n
	}
	date, order, _ := strings.Cut(g.value("datestyle"), ", ")
	switch date {
	case "SQL":
		st.Date = pgenc.SQL
	case "Postgres":
		st.Date = pgenc.Postgres
	case "German":
		st.Date = pgenc.German
	}
	switch order {
	case "DMY":
		st.Order = pgenc.DMY
	case "YMD":
		st.Order = pgenc.YMD
	}
	switch g.value("intervalstyle") {
	case "postgres_verbose":
		st.Interval = pgenc.IntervalPostgresVerbose
	case "sql_standard":
		st.Interval = pgenc.IntervalSQLStandard
	case "iso_8601":
		st.Interval = pgenc.IntervalISO8601
	}
	return st
}
