"""Keeps a copy of the demo's orders in SQLite: consumer.py URL FILE. Kill it at any moment: nothing is lost or repeated."""

import sqlite3
import sys

import psycopg

FEED = "consumer-python"


def apply(store, rows, position):
    """Writes rows (change, id, status, total) and the position behind them in one transaction."""
    with store:  # commits, or rolls back
        for change, id, status, total in rows:
            if change in ("DELETE", "UPDATE_BEFORE"):
                store.execute("DELETE FROM orders WHERE id = ?", (id,))
            else:
                store.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)", (id, status, total))
        store.execute("DELETE FROM position")
        store.execute("INSERT INTO position VALUES (?)", (position,))


def main(url, file):
    pg = psycopg.connect(url, autocommit=True)
    store = sqlite3.connect(file)
    store.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, status TEXT, total TEXT)")
    store.execute("CREATE TABLE IF NOT EXISTS position (seq INTEGER)")
    try:
        pg.execute("SELECT changefeed_create(%s, ARRAY['orders'])", (FEED,))
    except psycopg.errors.DuplicateObject:
        pass  # from an earlier run
    row = store.execute("SELECT seq FROM position").fetchone()
    if row is None:
        row = pg.execute("SELECT start_seq FROM skade.changefeeds WHERE name = %s", (FEED,)).fetchone()
        apply(store, pg.execute(f"SELECT 'INSERT', id, status, total::text FROM table_at('orders', 'seq:{row[0]}')"), row[0])
    position = row[0]
    pg.execute("LISTEN skade_commits")
    while True:
        leased = pg.execute("SELECT window_id, to_seq, lease_token FROM changefeed_window(%s)", (FEED,)).fetchone()
        if leased is None:
            for _ in pg.notifies(timeout=10, stop_after=1):
                pass
            continue
        window, to, token = leased
        if to > position:  # else it was applied, and the acknowledgement was lost
            apply(store, pg.execute("SELECT _change_type, id, status, total::text FROM table_changes('orders', "
                                    f"'seq:{position}', 'seq:{to}')"), to)
            position = to
        pg.execute("SELECT changefeed_ack(%s, %s, %s)", (FEED, window, token))


if __name__ == "__main__":
    main(*sys.argv[1:])
