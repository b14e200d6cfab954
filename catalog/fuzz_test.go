package catalog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func ptr(v int64) *int64 { return &v }

var sampleTable = &TableState{
	UUID: uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"), OID: 16400, Ident: ident("s", "naïve \"t\""),
	MetadataLocation: "file:///w/s/t/metadata/00001-x.metadata.json", CreatedSeq: 3, ChangedSeq: 9, metadataSize: 1234,
	snapshotID: ptr(-7), schemaID: 2, registered: true,
}

var sampleRecord = &Record{
	Seq: 9, Time: time.UnixMicro(1_750_000_000_000_001).UTC(), TxID: "t", Actor: "a", ApplicationName: "n", Context: []byte{0, 1},
	Tables: []TableRecord{
		{Kind: KindCommit, Key: keyOf(sampleTable.UUID), UUID: sampleTable.UUID, Ident: sampleTable.Ident, Ref: "main", OldMetadata: "a",
			NewMetadata: "b", SchemaID: 1, SnapshotID: ptr(5), ParentID: ptr(4), Operation: "append", RowsAdded: 1, RowsDeleted: 2, FilesAdded: 3, FilesDeleted: 4},
		{Kind: KindRename, Key: keyOf(sampleTable.UUID), UUID: sampleTable.UUID, Ident: ident("s", "u"), OldIdent: sampleTable.Ident, OldMetadata: "b", NewMetadata: "b"},
		{Kind: KindNamespace, Ident: ident("s"), Operation: OperationCreate},
	},
}

// sampleDropped has branches and tags.
var sampleDropped = func() *TableState {
	t := *sampleTable
	t.refs = []Ref{{"audit", 7, false}, {"v1", -9, true}}
	return &t
}()

// samples are one valid value of every kind.
func samples() map[byte][]byte {
	st := newState()
	st.seq, st.time = 5, time.UnixMicro(77).UTC()
	return map[byte][]byte{
		kindMeta:      folderMeta{version: 1, dir: "/d", id: sampleTable.UUID, created: time.UnixMicro(5)}.encode(),
		kindHead:      st.encodeHead(),
		kindNamespace: (&NamespaceState{Ident: ident("a", "b"), OID: 16384, Properties: iceberg.Properties{"k": "v", "l": ""}, CreatedSeq: 1, ChangedSeq: 2}).encode(),
		kindTable:     sampleTable.encode(),
		kindObject:    (&Object{Kind: "view", Namespace: ident("s"), Name: "v", OID: 16390, Payload: []byte("select 1"), CreatedSeq: 1, ChangedSeq: 4}).encode(),
		kindRecord:    sampleRecord.encode(),
		kindCommit:    commitRef{seq: 8, entry: 1}.encode(),
		kindFile:      encodeFile([]byte("bytes")),
		kindRedo: encodeRedo([]redoFile{{path: "/w/a", data: []byte("bytes")}, {path: "/w/c", late: true, patch: &patch{base: "/w/b", baseSize: 9, size: 7,
			parts: []patchPart{{off: 2, n: 4}, {bytes: []byte("xyz")}}}}}),
		kindDropped: (&DroppedTable{State: sampleDropped, Seq: 12, Time: time.UnixMicro(7).UTC()}).encode(),
	}
}

// again decodes a value by its kind and encodes the result.
func again(value []byte) ([]byte, error) {
	if len(value) == 0 {
		value = []byte{0}
	}
	switch value[0] {
	case kindMeta:
		m, err := decodeMeta(value)
		return m.encode(), err
	case kindHead:
		st := newState()
		err := st.decodeHead(value)
		return st.encodeHead(), err
	case kindNamespace:
		n, err := decodeNamespace(value)
		if err != nil {
			return nil, err
		}
		return n.encode(), nil
	case kindObject:
		o, err := decodeObject(value)
		if err != nil {
			return nil, err
		}
		return o.encode(), nil
	case kindRecord:
		r, err := decodeRecord(value)
		if err != nil {
			return nil, err
		}
		return r.encode(), nil
	case kindCommit:
		c, err := decodeCommitRef(value)
		return c.encode(), err
	case kindDropped:
		d, err := decodeDropped(value)
		if err != nil {
			return nil, err
		}
		return d.encode(), nil
	case kindRedo:
		files, err := decodeRedo(value)
		return encodeRedo(files), err
	case kindFile:
		data, err := decodeFile(value)
		return encodeFile(data), err
	default:
		t, err := decodeTable(value)
		if err != nil {
			return nil, err
		}
		return t.encode(), nil
	}
}

// Every kind comes back as it was, and every single changed bit is noticed.
func TestEncodings(t *testing.T) {
	for kind, value := range samples() {
		back, err := again(value)
		require.NoError(t, err, "kind %c", kind)
		require.Equal(t, value, back, "kind %c", kind)
		for bit := range 8 * len(value) {
			bad := bytes.Clone(value)
			bad[bit/8] ^= 1 << (bit % 8)
			if _, err := again(bad); err == nil {
				t.Errorf("kind %c: bit %d flipped and not noticed", kind, bit)
			}
		}
		for n := range value {
			if _, err := again(value[:n]); err == nil {
				t.Errorf("kind %c: cut to %d bytes and not noticed", kind, n)
			}
		}
	}
	got, err := decodeRecord(sampleRecord.encode())
	require.NoError(t, err)
	require.Equal(t, sampleRecord, got)
	seq, at, err := recordTime(sampleRecord.encode())
	require.NoError(t, err)
	require.Equal(t, sampleRecord.Seq, seq)
	require.Equal(t, sampleRecord.Time, at)
}

// FuzzValue decodes arbitrary payloads under a valid checksum: no panic, no allocation beyond the input, and what decodes
// encodes and decodes to the same.
func FuzzValue(f *testing.F) {
	for _, value := range samples() {
		f.Add(value[:len(value)-4])
	}
	f.Add([]byte{kindRecord, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, body []byte) {
		value := (&writer{b: bytes.Clone(body)}).seal()
		_, _, _ = recordTime(value)
		once, err := again(value)
		if err != nil {
			return
		}
		twice, err := again(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%x became %x: %v", once, twice, err)
		}
	})
}

// FuzzMetadata reads arbitrary metadata files of every compression.
func FuzzMetadata(f *testing.F) {
	names := []string{"00001-x.metadata.json", "00001-x.gz.metadata.json", "00001-x.metadata.json.gz", "00001-x.zstd.metadata.json"}
	for i := range names {
		f.Add(byte(i), []byte(`{"format-version":2}`))
	}
	f.Fuzz(func(t *testing.T, n byte, data []byte) {
		name := names[int(n)%len(names)]
		_ = metadataVersion(string(data))
		meta, err := decodeMetadata(name, data)
		if err == nil && meta == nil {
			t.Fatal("no metadata and no error")
		}
	})
}

// FuzzHistoryKey takes arbitrary keys apart.
func FuzzHistoryKey(f *testing.F) {
	f.Add(historyKey(tableKey(sampleTable.UUID), 7))
	f.Add([]byte("h"))
	f.Fuzz(func(t *testing.T, key []byte) {
		entity, seq, err := splitHistory(key)
		if err == nil && !bytes.Equal(historyKey(entity, seq), key) {
			t.Fatalf("%x: %x %d", key, entity, seq)
		}
		if len(key) > 0 {
			_ = newState().remove(key)
		}
	})
}

// Values written by format version 1 must decode for ever: testdata/values-v1.txt holds one of every kind.
func TestGoldenValues(t *testing.T) {
	data, err := os.ReadFile("testdata/values-v1.txt")
	if os.IsNotExist(err) && os.Getenv("SKADE_WRITE_GOLDEN") != "" {
		var b strings.Builder
		for _, kind := range slices.Sorted(maps.Keys(samples())) {
			fmt.Fprintf(&b, "%c %x\n", kind, samples()[kind])
		}
		require.NoError(t, os.WriteFile("testdata/values-v1.txt", []byte(b.String()), 0o644))
		return
	}
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	require.Len(t, lines, len(samples()))
	for _, line := range lines {
		value, err := hex.DecodeString(line[2:])
		require.NoError(t, err)
		require.Equal(t, samples()[line[0]], value, "kind %c", line[0])
		back, err := again(value)
		require.NoError(t, err)
		require.Equal(t, value, back)
	}
}
