// Command consumer-go keeps a copy of the demo's orders in SQLite: consumer-go URL FILE. Kill it at any moment: nothing is lost or repeated.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite"
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// apply writes rows (change, id, status, total) and the position behind them in one transaction.
func apply(store *sql.DB, rows pgx.Rows, position int64) {
	tx := must(store.Begin())
	var change, status, total string
	var id int64
	must(pgx.ForEachRow(rows, []any{&change, &id, &status, &total}, func() error {
		_, err := tx.Exec("DELETE FROM orders WHERE id = ?", id)
		if err == nil && (change == "INSERT" || change == "UPDATE_AFTER") {
			_, err = tx.Exec("INSERT INTO orders VALUES (?, ?, ?)", id, status, total)
		}
		return err
	}))
	must(tx.Exec("INSERT OR REPLACE INTO position VALUES (1, ?)", position))
	must(0, tx.Commit())
}

func main() {
	ctx, token := context.Background(), ""
	pg, store := must(pgx.Connect(ctx, os.Args[1])), must(sql.Open("sqlite", os.Args[2]))
	must(store.Exec(`CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, status TEXT, total TEXT);
		CREATE TABLE IF NOT EXISTS position (one INTEGER PRIMARY KEY, seq INTEGER)`))
	_, _ = pg.Exec(ctx, "SELECT changefeed_create('consumer-go', ARRAY['orders'])") // fails when it is there from an earlier run
	var position, window, to int64
	if store.QueryRow("SELECT seq FROM position").Scan(&position) != nil { // the first run begins with the table as of the feed's start
		must(0, pg.QueryRow(ctx, "SELECT start_seq FROM skade.changefeeds WHERE name = 'consumer-go'").Scan(&position))
		apply(store, must(pg.Query(ctx, fmt.Sprintf("SELECT 'INSERT', id, status, total::text FROM table_at('orders', 'seq:%d')", position))), position)
	}
	for {
		err := pg.QueryRow(ctx, "SELECT window_id, to_seq, lease_token FROM changefeed_window('consumer-go', max_wait => '10 s')").Scan(&window, &to, &token)
		if err == pgx.ErrNoRows {
			continue
		}
		if must(0, err); to > position { // else it was applied, and the acknowledgement was lost
			apply(store, must(pg.Query(ctx, fmt.Sprintf("SELECT _change_type, id, status, total::text FROM table_changes('orders', 'seq:%d', 'seq:%d')", position, to))), to)
			position = to
		}
		must(pg.Exec(ctx, "SELECT changefeed_ack('consumer-go', $1, $2)", window, token))
	}
}
