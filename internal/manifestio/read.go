package manifestio

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/klauspost/compress/flate"
)

// ReadEntries decodes a manifest's bytes, as iceberg.ReadManifest does. Manifests with the header that this package writes, whoever
// wrote them, are decoded here, without parsing their schema again; others by the library.
func ReadEntries(m iceberg.ManifestFile, data []byte, discardDeleted bool) ([]iceberg.ManifestEntry, error) {
	p, body, err := knownHeader(m, data)
	if p == nil || err != nil {
		return iceberg.ReadManifest(m, bytes.NewReader(data), discardDeleted)
	}
	r := reader{manifest: m, plan: p, discardDeleted: discardDeleted}
	if first := m.FirstRowID(); first != nil && p.content == iceberg.ManifestContentData {
		r.inherit, r.nextRow = true, *first
	}
	if err := r.blocks(body); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", m.FilePath(), err)
	}
	return r.out, nil
}

// plan is what a header means.
type plan struct {
	version int
	content iceberg.ManifestContent
	specID  int
	fields  []partitionField
	plain   bool // not compressed
}

var plans = struct {
	sync.Mutex
	byHeader map[string]*plan
}{byHeader: map[string]*plan{}}

// knownHeader returns the plan of a header that this package would have written, nil for another one, and what follows the header
// beginning with its sync marker.
func knownHeader(m iceberg.ManifestFile, data []byte) (*plan, []byte, error) {
	// The sync marker ends the header: its metadata is everything before it.
	meta, n, err := readHeader(data)
	if err != nil || len(data) < n+16 {
		return nil, nil, err
	}
	if codec := string(meta["avro.codec"]); codec != "deflate" && codec != "null" {
		return nil, nil, nil
	}
	key := string(data[:n])
	plans.Lock()
	p, ok := plans.byHeader[key]
	plans.Unlock()
	if !ok {
		if p, err = newPlan(meta); err != nil {
			return nil, nil, err
		}
		plans.Lock()
		if len(plans.byHeader) >= schemasKept {
			clear(plans.byHeader)
		}
		plans.byHeader[key] = p
		plans.Unlock()
	}
	if p == nil || p.version > m.Version() || p.content != m.ManifestContent() || p.specID != int(m.PartitionSpecID()) {
		return nil, nil, nil // the library says what is wrong
	}
	return p, data[n:], nil
}

// newPlan returns nil for a header of another writer.
func newPlan(meta map[string][]byte) (*plan, error) {
	version, err := strconv.Atoi(string(meta["format-version"]))
	if err != nil || version < 2 || version > 3 {
		return nil, nil
	}
	p := &plan{version: version, plain: string(meta["avro.codec"]) == "null"}
	switch string(meta["content"]) {
	case "data":
		p.content = iceberg.ManifestContentData
	case "deletes":
		p.content = iceberg.ManifestContentDeletes
	default:
		return nil, nil
	}
	if p.specID, err = strconv.Atoi(string(meta["partition-spec-id"])); err != nil {
		return nil, nil
	}
	var sc iceberg.Schema
	var fields []iceberg.PartitionField
	if json.Unmarshal(meta["schema"], &sc) != nil || json.Unmarshal(meta["partition-spec"], &fields) != nil {
		return nil, nil
	}
	spec := iceberg.NewPartitionSpecID(p.specID, fields...)
	ours, err := manifestHeader(version, p.content, spec, &sc)
	if err != nil || !bytes.Equal(ours["avro.schema"], meta["avro.schema"]) {
		return nil, nil
	}
	if p.fields, err = partitionFields(spec, &sc); err != nil {
		return nil, nil
	}
	return p, nil
}

var errDamaged = errors.New("malformed Avro data")

// reader decodes the blocks of one manifest.
type reader struct {
	*plan
	manifest       iceberg.ManifestFile
	discardDeleted bool
	inherit        bool
	nextRow        int64
	out            []iceberg.ManifestEntry

	b   []byte // what is left of the block
	bad bool
}

func (r *reader) blocks(body []byte) error {
	sync := body[:16]
	r.b = body[16:]
	for len(r.b) > 0 {
		rows, size := r.long(), r.long()
		if r.bad || rows < 0 || size < 0 || size+16 > int64(len(r.b)) {
			return errDamaged
		}
		packed, rest := r.b[:size], r.b[size:]
		if !bytes.Equal(rest[:16], sync) {
			return errDamaged
		}
		r.b = packed
		if !r.plain {
			plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
			if err != nil {
				return fmt.Errorf("%w: %w", errDamaged, err)
			}
			r.b = plain
		}
		for range rows {
			if err := r.entry(); err != nil {
				return err
			}
		}
		if len(r.b) > 0 {
			return errDamaged
		}
		r.b = rest[16:]
	}
	return nil
}

func (r *reader) long() int64 {
	u, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) fixed(n int64) []byte {
	if n < 0 || n > int64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte { return r.fixed(r.long()) }

func (r *reader) bool() bool {
	v := r.fixed(1)
	return len(v) == 1 && v[0] != 0
}

// some reads a union's branch.
func (r *reader) some() bool { return r.long() == 1 }

func (r *reader) optLong() *int64 {
	if !r.some() {
		return nil
	}
	v := r.long()
	return &v
}

func (r *reader) optBytes() []byte {
	if !r.some() {
		return nil
	}
	return r.bytes()
}

func (r *reader) optString() *string {
	if !r.some() {
		return nil
	}
	s := string(r.bytes())
	return &s
}

// items calls f for each element of an optional array and says whether there is one.
func (r *reader) items(f func()) bool {
	if !r.some() {
		return false
	}
	for !r.bad {
		n := r.long()
		if n == 0 {
			return true
		}
		if n < 0 { // with the block's size in bytes
			n = -n
			r.long()
		}
		for range n {
			if r.bad {
				break
			}
			f()
		}
	}
	return true
}

func readMap[V any](r *reader, value func() V) map[int]V {
	var out map[int]V
	if r.items(func() {
		if out == nil {
			out = map[int]V{}
		}
		k := r.long()
		out[int(k)] = value()
	}) && out == nil {
		out = map[int]V{}
	}
	return out
}

// entry decodes one manifest_entry. What it inherits is the spec's "Sequence Number Inheritance" and "First Row ID Inheritance".
func (r *reader) entry() error {
	status := iceberg.ManifestEntryStatus(r.long())
	id, seq, fileSeq := r.optLong(), r.optLong(), r.optLong()
	f := r.file()
	if r.bad {
		return errDamaged
	}
	if status < iceberg.EntryStatusEXISTING || status > iceberg.EntryStatusDELETED || f.content < iceberg.EntryContentData || f.content > iceberg.EntryContentEqDeletes ||
		(f.content == iceberg.EntryContentData) != (r.content == iceberg.ManifestContentData) || f.count < 0 {
		return errDamaged
	}
	if id == nil {
		own := r.manifest.SnapshotID()
		id = &own
	}
	inherited := r.manifest.SequenceNum()
	if seq == nil && (inherited == 0 || status == iceberg.EntryStatusADDED) {
		seq = &inherited
	}
	if fileSeq == nil && (inherited == 0 || status == iceberg.EntryStatusADDED) {
		fileSeq = &inherited
	}
	if r.inherit && status != iceberg.EntryStatusDELETED && f.firstRowID == nil {
		at := r.nextRow
		f.firstRowID = &at
		r.nextRow += f.count
	}
	if !r.discardDeleted || status != iceberg.EntryStatusDELETED {
		r.out = append(r.out, iceberg.NewManifestEntry(status, id, seq, fileSeq, f))
	}
	return nil
}

func (r *reader) file() *dataFile {
	f := &dataFile{specID: int32(r.specID)}
	f.content = iceberg.ManifestEntryContent(r.long())
	f.path = string(r.bytes())
	f.format = iceberg.FileFormat(r.bytes())
	f.count, f.size = r.long(), r.long()
	f.sizes = readMap(r, r.long)
	f.values = readMap(r, r.long)
	f.nulls = readMap(r, r.long)
	f.nans = readMap(r, r.long)
	f.lower = readMap(r, r.bytes)
	f.upper = readMap(r, r.bytes)
	f.key = r.optBytes()
	r.items(func() { f.splits = append(f.splits, r.long()) })
	r.items(func() { f.equality = append(f.equality, int(r.long())) })
	if v := r.optLong(); v != nil {
		order := int(*v)
		f.sortOrder = &order
	}
	if r.version >= 3 {
		f.firstRowID = r.optLong()
		f.referenced = r.optString()
		f.offset, f.length = r.optLong(), r.optLong()
	}
	f.partition = make(map[int]any, len(r.fields))
	for i := range r.fields {
		f.partition[r.fields[i].id] = r.partitionValue(&r.fields[i])
	}
	if r.version == 2 {
		f.referenced = r.optString()
	}
	return f
}

// partitionValue has the Go types of iceberg-go's reader.
func (r *reader) partitionValue(p *partitionField) any {
	if !r.some() {
		return nil
	}
	switch t := p.typ.(type) {
	case iceberg.BooleanType:
		return r.bool()
	case iceberg.Int32Type:
		return int32(r.long())
	case iceberg.Int64Type:
		return r.long()
	case iceberg.DateType:
		return iceberg.Date(r.long())
	case iceberg.TimeType:
		return iceberg.Time(r.long())
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.Timestamp(r.long())
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.TimestampNano(r.long())
	case iceberg.Float32Type:
		if b := r.fixed(4); b != nil {
			return math.Float32frombits(binary.LittleEndian.Uint32(b))
		}
	case iceberg.Float64Type:
		if b := r.fixed(8); b != nil {
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case iceberg.StringType:
		return string(r.bytes())
	case iceberg.BinaryType:
		return r.bytes()
	case iceberg.FixedType:
		return r.fixed(int64(p.size))
	case iceberg.UUIDType:
		if b := r.fixed(16); b != nil {
			return uuid.UUID(b)
		}
	case iceberg.DecimalType:
		if b := r.fixed(int64(p.size)); b != nil {
			return iceberg.DecimalLiteral{Val: decimal128.FromBigInt(fromTwosComplement(b)), Scale: t.Scale()}
		}
	}
	return nil
}

func fromTwosComplement(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}
