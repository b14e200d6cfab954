package catalog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// disk records which files were synced since they were made, to lose the others.
type disk struct {
	mu       sync.Mutex
	unsynced map[string]bool
}

func (d *disk) after(op storeio.Op, path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch op {
	case storeio.OpCreate:
		d.unsynced[path] = true
	case storeio.OpSync, storeio.OpRemove:
		delete(d.unsynced, path)
	}
}

// losePower does to unsynced files what a power cut may do: some vanish, some are empty, some hold other bytes.
func (d *disk) losePower(t *testing.T) (lost int) {
	paths := make([]string, 0, len(d.unsynced))
	for p := range d.unsynced {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for i, p := range paths {
		st, err := os.Stat(p)
		if err != nil {
			continue
		}
		lost++
		switch i % 3 {
		case 0:
			require.NoError(t, os.Remove(p))
		case 1:
			require.NoError(t, os.Truncate(p, 0))
		case 2:
			require.NoError(t, os.WriteFile(p, make([]byte, st.Size()), 0o644))
		}
	}
	return lost
}

// workload opens the folder and commits until something fails. It returns the records that were acknowledged.
func workload(dir string, fs *storeio.FS, lateSize int) (acked []*Record, err error) {
	c, err := Open(ctx, Options{Dir: dir, FS: fs, lateSize: lateSize})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	do := func(changes ...Change) error {
		rec, err := c.Commit(ctx, &Request{Changes: changes})
		if err == nil {
			acked = append(acked, rec)
		}
		return err
	}
	if err := do(CreateNamespace{Ident: ident("s")}); err != nil {
		return acked, err
	}
	t := &testing.T{}
	meta := newMetadata(t, c, ident("s", "t"))
	if err := do(CreateTable{Ident: ident("s", "t"), Metadata: meta}); err != nil {
		return acked, err
	}
	key := keyOf(meta.TableUUID())
	for i := range int64(4) {
		if i == 2 {
			if err := c.settler.settle(); err != nil { // what it could not do waits on; the next operation fails too
				return acked, err
			}
		}
		if err := do(UpdateTable{Key: key, Build: appendFile(c.FS(), i)}); err != nil {
			return acked, err
		}
	}
	big := func(_ context.Context, in BuildInput) (BuildOutput, error) { // above the inline limit: synced by the group
		if err := writeUnsynced(c.FS(), in.Batch, in.Base.Location()+"/data/big", make([]byte, 2*storeio.InlineLimit)); err != nil {
			return BuildOutput{}, err
		}
		return buildAppend(c.FS(), in, 9)
	}
	return acked, do(UpdateTable{Key: key, Build: big})
}

// C3 and C4: die at operation k = 0, 1, 2 … until none is left, lose what was not synced, open again: every acknowledged
// commit is there with all its files, no seq is missing, and at most the commit of unknown outcome came on top.
func TestPowerCutAtEveryOperation(t *testing.T) {
	for name, lateSize := range map[string]int{"metadata at once": 0, "metadata late": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			powerCuts(t, lateSize)
		})
	}
}

func powerCuts(t *testing.T, lateSize int) {
	failed, lost, inlined := int64(0), 0, 0
	for k := int64(0); ; k++ {
		dir := t.TempDir()
		inj := &storeio.Injector{K: k, Stop: true}
		d := &disk{unsynced: map[string]bool{}}
		hooks := inj.Hooks()
		hooks.After = d.after
		acked, err := workload(dir, storeio.NewFS(storeio.Options{Hooks: hooks}), lateSize)
		failed += inj.Failed()
		if inj.Failed() == 0 {
			require.NoError(t, err)
			require.Len(t, acked, 7)
			t.Logf("%d operations", inj.Seen())
			break
		}
		require.Error(t, err, "operation %d", k)
		if n := d.losePower(t); n > 0 {
			lost += n
			inlined++
		}
		c, err := Open(ctx, Options{Dir: dir})
		require.NoError(t, err, "operation %d", k)
		clean(t, c)
		require.GreaterOrEqual(t, c.CommitSeq(), uint64(len(acked)), "operation %d", k)
		require.LessOrEqual(t, c.CommitSeq(), uint64(len(acked)+1), "operation %d", k)
		for _, rec := range acked {
			got, err := c.Record(ctx, rec.Seq)
			require.NoError(t, err)
			require.Equal(t, rec, got)
		}
		if _, err := c.Cut().Table(ident("s", "t")); err == nil { // the folder works on
			st, _ := c.Cut().Table(ident("s", "t"))
			appendTo(t, c, st, 1)
			clean(t, c)
		}
		require.NoError(t, c.Close())
	}
	require.Greater(t, failed, int64(20))
	require.Greater(t, lost, 10, "files were lost, and came back from the store")
}

// C4: one failing operation, with everything after it working again, fails its commit cleanly and the next succeeds.
func TestFailOnceAtEveryOperation(t *testing.T) {
	t.Parallel()
	failed := int64(0)
	for k := int64(0); ; k++ {
		dir := t.TempDir()
		inj := &storeio.Injector{K: k}
		acked, err := workload(dir, storeio.NewFS(storeio.Options{Hooks: inj.Hooks()}), 1)
		failed += inj.Failed()
		if inj.Failed() == 0 {
			break
		}
		c, oerr := Open(ctx, Options{Dir: dir})
		require.NoError(t, oerr, "operation %d", k)
		clean(t, c)
		if errors.Is(err, ErrUnknownOutcome) {
			require.LessOrEqual(t, c.CommitSeq(), uint64(len(acked)+1))
		} else {
			require.EqualValues(t, len(acked), c.CommitSeq(), "operation %d: %v", k, err)
		}
		require.NoError(t, c.Close())
	}
	require.Greater(t, failed, int64(20))
}

// childMain is the process that TestKill kills: four writers commit and print every acknowledged seq.
func childMain(dir string) {
	c, err := Open(ctx, Options{Dir: dir})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	t := &testing.T{}
	if c.CommitSeq() == 0 {
		_, _ = c.Commit(ctx, &Request{Changes: []Change{CreateNamespace{Ident: ident("s")}}})
		for i := range 2 {
			id := ident("s", fmt.Sprint("t", i))
			_, _ = c.Commit(ctx, &Request{Changes: []Change{CreateTable{Ident: id, Metadata: newMetadata(t, c, id)}}})
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for {
				st, err := c.Cut().Table(ident("s", fmt.Sprint("t", w%2)))
				if err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				rec, err := c.Commit(ctx, &Request{TxID: strconv.Itoa(w), Changes: []Change{UpdateTable{Key: st.Key, Build: appendFile(c.FS(), 1)}}})
				if err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				mu.Lock()
				fmt.Println(rec.Seq, *rec.Tables[0].SnapshotID)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// C2 and C3: SIGKILL in the middle of a stream of commits, 20 times on one folder: the check is clean, every acknowledged
// commit is there, no seq is missing.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acked := map[uint64]int64{}
	for round := range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SKADE_CATALOG_CHILD="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if n == 2+round%5 {
				require.NoError(t, cmd.Process.Kill()) // what is in the pipe was acknowledged too
			}
			f := strings.Fields(lines.Text())
			require.NotEqual(t, "error", f[0], lines.Text())
			if len(f) != 2 {
				continue
			}
			seq, err := strconv.ParseUint(f[0], 10, 64)
			require.NoError(t, err)
			id, err := strconv.ParseInt(f[1], 10, 64)
			if err == nil {
				acked[seq] = id
			}
		}
		_ = cmd.Wait()
		c, err := Open(ctx, Options{Dir: dir})
		require.NoError(t, err)
		clean(t, c)
		recs, err := c.CommitsSince(ctx, 0, 0)
		require.NoError(t, err)
		require.Len(t, recs, int(c.CommitSeq()))
		for seq, id := range acked {
			require.LessOrEqual(t, seq, c.CommitSeq())
			require.Equal(t, id, *recs[seq-1].Tables[0].SnapshotID)
		}
		require.NoError(t, c.Close())
	}
	require.Greater(t, len(acked), 20*2)
}
