package manifestio

import (
	"sync/atomic"

	"github.com/apache/iceberg-go"
)

// dataFile is a decoded data_file. It is not changed after it was decoded; its maps are shared with whoever asks.
type dataFile struct {
	content        iceberg.ManifestEntryContent
	path           string
	format         iceberg.FileFormat
	partition      map[int]any
	count, size    int64
	sizes, values  map[int]int64
	nulls, nans    map[int]int64
	lower, upper   map[int][]byte
	key            []byte
	splits         []int64
	equality       []int
	sortOrder      *int
	specID         int32
	firstRowID     *int64
	referenced     *string
	offset, length *int64

	record atomic.Pointer[[]byte] // its encoding in version 2 without partition fields: it is written again whenever manifests are merged
}

// Share returns a data file whose maps are shared with whoever asks, where the library's are copied each time. Nobody may change them.
func Share(f iceberg.DataFile) iceberg.DataFile {
	if d, ok := f.(*dataFile); ok {
		return d
	}
	return &dataFile{
		content: f.ContentType(), path: f.FilePath(), format: f.FileFormat(), partition: f.Partition(), count: f.Count(), size: f.FileSizeBytes(),
		sizes: f.ColumnSizes(), values: f.ValueCounts(), nulls: f.NullValueCounts(), nans: f.NaNValueCounts(), lower: f.LowerBoundValues(),
		upper: f.UpperBoundValues(), key: f.KeyMetadata(), splits: f.SplitOffsets(), equality: f.EqualityFieldIDs(), sortOrder: f.SortOrderID(),
		specID: f.SpecID(), firstRowID: f.FirstRowID(), referenced: f.ReferencedDataFile(), offset: f.ContentOffset(), length: f.ContentSizeInBytes(),
	}
}

var _ iceberg.DataFile = (*dataFile)(nil)

func (f *dataFile) ContentType() iceberg.ManifestEntryContent { return f.content }
func (f *dataFile) FilePath() string                          { return f.path }
func (f *dataFile) FileFormat() iceberg.FileFormat            { return f.format }
func (f *dataFile) Partition() map[int]any                    { return f.partition }
func (f *dataFile) Count() int64                              { return f.count }
func (f *dataFile) FileSizeBytes() int64                      { return f.size }
func (f *dataFile) ColumnSizes() map[int]int64                { return f.sizes }
func (f *dataFile) ValueCounts() map[int]int64                { return f.values }
func (f *dataFile) NullValueCounts() map[int]int64            { return f.nulls }
func (f *dataFile) NaNValueCounts() map[int]int64             { return f.nans }
func (f *dataFile) DistinctValueCounts() map[int]int64        { return nil }
func (f *dataFile) LowerBoundValues() map[int][]byte          { return f.lower }
func (f *dataFile) UpperBoundValues() map[int][]byte          { return f.upper }
func (f *dataFile) KeyMetadata() []byte                       { return f.key }
func (f *dataFile) SplitOffsets() []int64                     { return f.splits }
func (f *dataFile) EqualityFieldIDs() []int                   { return f.equality }
func (f *dataFile) SortOrderID() *int                         { return f.sortOrder }
func (f *dataFile) SpecID() int32                             { return f.specID }
func (f *dataFile) FirstRowID() *int64                        { return f.firstRowID }
func (f *dataFile) ReferencedDataFile() *string               { return f.referenced }
func (f *dataFile) ContentOffset() *int64                     { return f.offset }
func (f *dataFile) ContentSizeInBytes() *int64                { return f.length }
