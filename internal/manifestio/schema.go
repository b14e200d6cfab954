package manifestio

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/apache/iceberg-go"
)

// schemas keeps the headers that iceberg-go writes, by what they depend on. A table schema and spec have one; the cache is
// emptied when it is full.
var schemas = struct {
	sync.Mutex
	byKey map[string]map[string][]byte
}{byKey: map[string]map[string][]byte{}}

const schemasKept = 1024

func cachedHeader(key string, build func() ([]byte, error), change func(map[string][]byte) error) (map[string][]byte, error) {
	schemas.Lock()
	defer schemas.Unlock()
	if m, ok := schemas.byKey[key]; ok {
		return m, nil
	}
	file, err := build()
	if err != nil {
		return nil, err
	}
	m, _, err := readHeader(file)
	if err != nil {
		return nil, err
	}
	delete(m, "avro.codec")
	if err := change(m); err != nil {
		return nil, err
	}
	if len(schemas.byKey) >= schemasKept {
		clear(schemas.byKey)
	}
	schemas.byKey[key] = m
	return m, nil
}

// manifestHeader is the metadata of a manifest's header.
func manifestHeader(version int, content iceberg.ManifestContent, spec iceberg.PartitionSpec, sc *iceberg.Schema) (map[string][]byte, error) {
	schemaJSON, err := json.Marshal(sc)
	if err != nil {
		return nil, err
	}
	specJSON, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	key := strconv.Itoa(version) + content.String() + string(specJSON) + strconv.Itoa(sc.ID) + string(schemaJSON)
	return cachedHeader(key, func() ([]byte, error) {
		var buf bytes.Buffer
		if _, err := iceberg.NewManifestWriter(version, &buf, spec, sc, 1, iceberg.WithManifestWriterContent(content)); err != nil {
			return nil, err
		}
		return buf.Bytes(), nil
	}, func(m map[string][]byte) (err error) {
		if version == 2 {
			m["avro.schema"], err = withReferencedDataFile(m["avro.schema"])
		}
		return err
	})
}

// listSchema is the Avro schema of a manifest list.
func listSchema(version int) ([]byte, error) {
	m, err := cachedHeader("list"+strconv.Itoa(version), func() ([]byte, error) {
		var buf bytes.Buffer
		seq := int64(1)
		err := iceberg.WriteManifestList(version, &buf, 1, nil, &seq, 0, nil)
		return buf.Bytes(), err
	}, func(map[string][]byte) error { return nil })
	return m["avro.schema"], err
}

var errHeader = errors.New("malformed Avro header")

// readHeader reads the metadata of a container file's header. n is where the header's sync marker begins.
func readHeader(b []byte) (meta map[string][]byte, n int, err error) {
	r := bytes.NewReader(b)
	if magic := make([]byte, 4); !read(r, magic) || string(magic) != "Obj\x01" {
		return nil, 0, errHeader
	}
	long := func() int64 {
		u, err := binary.ReadUvarint(r)
		if err != nil {
			return -1 << 62
		}
		return int64(u>>1) ^ -int64(u&1)
	}
	field := func() []byte {
		n := long()
		if n < 0 || n > int64(r.Len()) {
			return nil
		}
		v := make([]byte, n)
		read(r, v)
		return v
	}
	out := map[string][]byte{}
	for {
		n := long()
		if n == 0 {
			return out, len(b) - r.Len(), nil
		}
		if n < 0 { // a block with its size in bytes
			n = -n
			long()
		}
		for range min(n, int64(r.Len())) {
			k := field()
			v := field()
			if k == nil || v == nil {
				return nil, 0, errHeader
			}
			out[string(k)] = v
		}
		if r.Len() == 0 {
			return nil, 0, errHeader
		}
	}
}

func read(r *bytes.Reader, b []byte) bool {
	_, err := io.ReadFull(r, b)
	return err == nil
}

// withReferencedDataFile adds the field to a version 2 schema, at the end of the data_file record.
func withReferencedDataFile(schema []byte) ([]byte, error) {
	type record struct {
		Type   json.RawMessage   `json:"type"`
		Name   string            `json:"name"`
		Fields []json.RawMessage `json:"fields"`
	}
	type field struct {
		Name    string          `json:"name"`
		Type    json.RawMessage `json:"type"`
		FieldID int             `json:"field-id"`
	}
	var entry record
	if err := json.Unmarshal(schema, &entry); err != nil {
		return nil, err
	}
	last := len(entry.Fields) - 1
	var f field
	if last < 0 || json.Unmarshal(entry.Fields[last], &f) != nil || f.Name != "data_file" {
		return nil, fmt.Errorf("manifest schema does not end with data_file")
	}
	var file record
	if err := json.Unmarshal(f.Type, &file); err != nil {
		return nil, err
	}
	file.Fields = append(file.Fields, json.RawMessage(
		`{"name":"referenced_data_file","type":["null","string"],"default":null,"field-id":143,"doc":"Fully qualified location of a data file that all deletes reference"}`))
	var err error
	if f.Type, err = json.Marshal(file); err != nil {
		return nil, err
	}
	if entry.Fields[last], err = json.Marshal(f); err != nil {
		return nil, err
	}
	return json.Marshal(entry)
}
