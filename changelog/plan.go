package changelog

// DeltaPlan is what a window touches on the level of files.
type DeltaPlan struct {
	Steps int // snapshots in the window, replace snapshots included
	// Skipped counts replace snapshots that were passed over after their row count was checked.
	Skipped int
	// Added and Removed are data files that one end of a step has and the other has not.
	Added, Removed []string
	// Changed are data files that both ends have with different suppressed positions.
	Changed []string
	// EqualityDeletes, PositionDeletes and DVs are the delete files the window's snapshots added.
	EqualityDeletes, PositionDeletes, DVs []string
	// FilesConsidered counts the data files live at the window's ends, FilesOpened those the window reads.
	FilesConsidered, FilesOpened int
	// RowsRead and BytesRead bound what is decoded: rows on both sides, and the files' sizes in proportion to them.
	RowsRead, BytesRead int64
}
