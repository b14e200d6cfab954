package pgcopy

import "github.com/nordisk/skade-pg/internal/pgerr"

// Options are COPY's options, defaults filled in by Text and CSV.
type Options struct {
	CSV       bool
	Delimiter byte
	Null      string
	Header    bool
	// Match makes Reader compare the header with the column names (HEADER MATCH).
	Match         bool
	Quote, Escape byte
	// By column index; CSV only.
	ForceQuote, ForceNotNull, ForceNull []bool
}

// Text are the defaults of FORMAT text.
func Text() Options { return Options{Delimiter: '\t', Null: `\N`} }

// CSV are the defaults of FORMAT csv.
func CSV() Options { return Options{CSV: true, Delimiter: ',', Quote: '"', Escape: '"'} }

// MaxLine bounds one row, as PostgreSQL's 1 GB limit on a string does.
const MaxLine = 1 << 30

func badFormat(format string, args ...any) *pgerr.Error {
	return pgerr.Newf(pgerr.BadCopyFileFormat, format, args...)
}

func at(flags []bool, i int) bool { return i < len(flags) && flags[i] }
