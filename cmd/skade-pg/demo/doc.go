// Package demo fills a warehouse with a small shop (customers, orders, order_items) and keeps it gently busy, through the
// gateway's own port, as any client would: so that LISTEN, table_changes and lookup show something within seconds.
//
// The shop stays bounded over days: orders beyond the newest maxOrders are deleted, and a VACUUM a minute compacts the tables and lets go
// of snapshots older than their own retention.
package demo
