// Keeps a copy of the demo's orders in a JSON file: node consumer.mjs URL FILE. Kill it at any moment: nothing is lost or repeated.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import pg from 'pg'

const FEED = 'consumer-javascript'
const [url, file] = process.argv.slice(2)
const client = new pg.Client(url)
await client.connect()

// The copy and its position are one file, replaced as a whole.
let store = existsSync(file) ? JSON.parse(readFileSync(file)) : null
function save() {
  writeFileSync(file + '.new', JSON.stringify(store))
  renameSync(file + '.new', file)
}

async function rows(sql, ...values) {
  return (await client.query(sql, values)).rows
}

await client.query('SELECT changefeed_create($1, ARRAY[\'orders\'])', [FEED]).catch((e) => {
  if (e.code !== '42710') throw e // else it is there from an earlier run
})
if (store === null) {
  const [feed] = await rows('SELECT start_seq FROM skade.changefeeds WHERE name = $1', FEED)
  store = { position: feed.start_seq, orders: {} } // a bigint arrives as a string, and stays one
  for (const r of await rows(`SELECT id, status, total::text FROM table_at('orders', 'seq:${store.position}')`)) {
    store.orders[r.id] = [r.status, r.total]
  }
  save()
}

let wake = () => {}
client.on('notification', () => wake())
client.on('error', (e) => { console.error(e.message); process.exit(1) })
await client.query('LISTEN skade_commits')
for (;;) {
  const news = new Promise((resolve) => { wake = resolve }) // before the look: nothing comes between
  const [leased] = await rows('SELECT window_id, to_seq, lease_token FROM changefeed_window($1)', FEED)
  if (leased === undefined) {
    let timer
    await Promise.race([news, new Promise((resolve) => { timer = setTimeout(resolve, 10_000) })])
    clearTimeout(timer)
    continue
  }
  if (BigInt(leased.to_seq) > BigInt(store.position)) { // else it was applied, and the acknowledgement was lost
    const changes = `SELECT _change_type, id, status, total::text FROM table_changes('orders', 'seq:${store.position}', 'seq:${leased.to_seq}')`
    for (const r of await rows(changes)) {
      if (r._change_type === 'DELETE' || r._change_type === 'UPDATE_BEFORE') delete store.orders[r.id]
      else store.orders[r.id] = [r.status, r.total]
    }
    store.position = leased.to_seq
    save()
  }
  await rows('SELECT changefeed_ack($1, $2, $3)', FEED, leased.window_id, leased.lease_token)
}
