package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
)

const (
	customers = 200
	maxOrders = 2000
	// tick is the pause between two transactions; after busyTicks of them it is slowTick, since the commit log grows with each.
	tick      = time.Second
	busyTicks = 900
	slowTick  = 5 * time.Second
	// vacuumEvery is the number of ticks between two VACUUMs.
	vacuumEvery = 60
	// reconnectAfter is the pause before a lost connection is made again.
	reconnectAfter = time.Second
)

// Run creates the shop when it is not there and works on it until ctx ends, whose error it returns. A connection that is lost (somebody
// terminated it) is made again; a shop that cannot be made is an error.
func Run(ctx context.Context, url string, log zerolog.Logger) error {
	for started := false; ; {
		err := work(ctx, url, log, &started)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !started {
			return err
		}
		log.Warn().Err(err).Msg("demo: connecting again")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(reconnectAfter):
		}
	}
}

// work is one connection's life.
func work(ctx context.Context, url string, log zerolog.Logger, started *bool) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("parse URL: %w", err)
	}
	cfg.RuntimeParams["application_name"] = "skade-demo"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	s := &shop{conn: conn, rnd: rand.New(rand.NewPCG(1, 2))}
	if err := s.create(ctx); err != nil {
		return fmt.Errorf("create the shop: %w", err)
	}
	if !*started {
		log.Info().Msg("demo: tables customers, orders and order_items; one small transaction a second")
	}
	*started = true
	t := time.NewTicker(tick)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		if n == busyTicks {
			t.Reset(slowTick)
		}
		err := s.step(ctx)
		if err == nil && n%vacuumEvery == 0 {
			_, err = conn.Exec(ctx, "VACUUM customers, orders, order_items")
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case conn.IsClosed():
			return err
		case err != nil:
			log.Warn().Err(err).Msg("demo: transaction failed, going on")
		}
	}
}

// shop is the demo's state: what it would otherwise have to ask for.
type shop struct {
	conn      *pgx.Conn
	rnd       *rand.Rand
	nextOrder int64
	oldest    int64
}

// retention keeps the shop small: VACUUM lets go of snapshots after five minutes, and of metadata files beyond the last 20.
const retention = ` WITH ("history.expire.max-snapshot-age-ms" = '300000', "history.expire.min-snapshots-to-keep" = '100', "write.metadata.previous-versions-max" = '20')`

var schema = []string{
	`CREATE TABLE IF NOT EXISTS customers (
	id bigint PRIMARY KEY, name text NOT NULL, city text, email varchar(80), since date)` + retention,
	`CREATE TABLE IF NOT EXISTS orders (
	id bigint PRIMARY KEY, customer_id bigint NOT NULL, status text NOT NULL, total numeric(12,2), placed_at timestamptz NOT NULL)` + retention,
	`CREATE TABLE IF NOT EXISTS order_items (
	order_id bigint, line int, product text NOT NULL, quantity int NOT NULL, price numeric(10,2) NOT NULL, PRIMARY KEY (order_id, line))` + retention,
	`COMMENT ON TABLE customers IS 'customers of the demo shop'`,
	`COMMENT ON TABLE orders IS 'orders of the demo shop, the newest 2,000'`,
	`COMMENT ON TABLE order_items IS 'lines of the demo shop''s orders'`,
}

func (s *shop) create(ctx context.Context) error {
	for _, sql := range schema {
		if _, err := s.conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	var n int64
	if err := s.conn.QueryRow(ctx, "SELECT count(*) FROM customers").Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		_, err := s.conn.Exec(ctx, `INSERT INTO customers
SELECT n, 'Customer ' || n, (ARRAY['Oslo','Bergen','Aarhus','Malmö','Turku'])[1 + n % 5], 'customer' || n || '@example.com', date '2026-01-01' + (n % 300)::int
FROM generate_series(1, $1::int) n`, customers)
		if err != nil {
			return err
		}
	}
	return s.conn.QueryRow(ctx, "SELECT coalesce(max(id), 0) + 1, coalesce(min(id), 1) FROM orders").Scan(&s.nextOrder, &s.oldest)
}

var products = []string{"skis", "poles", "boots", "wax", "gloves", "hat", "goggles", "thermos"}

// step is one transaction: mostly a new order, sometimes progress of an old one, a customer who moves, a cancelled order.
func (s *shop) step(ctx context.Context) error {
	switch n := s.rnd.IntN(10); {
	case n < 5 || s.nextOrder-s.oldest < 5:
		return s.placeOrder(ctx)
	case n < 8:
		id := s.oldest + s.rnd.Int64N(s.nextOrder-s.oldest)
		_, err := s.conn.Exec(ctx, `UPDATE orders SET status = CASE status WHEN 'new' THEN 'paid' WHEN 'paid' THEN 'shipped' ELSE 'delivered' END WHERE id = $1 AND status <> 'delivered'`, id)
		return err
	case n < 9:
		cities := []string{"Oslo", "Bergen", "Aarhus", "Malmö", "Turku", "Reykjavík"}
		_, err := s.conn.Exec(ctx, `UPDATE customers SET city = $2 WHERE id = $1`, 1+s.rnd.Int64N(customers), cities[s.rnd.IntN(len(cities))])
		return err
	}
	return s.deleteOrders(ctx)
}

func (s *shop) placeOrder(ctx context.Context) error {
	id := s.nextOrder
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		total := 0
		lines := 1 + s.rnd.IntN(3)
		for line := 1; line <= lines; line++ {
			quantity, cents := 1+s.rnd.IntN(4), 500+s.rnd.IntN(30000)
			total += quantity * cents
			if _, err := tx.Exec(ctx, `INSERT INTO order_items VALUES ($1, $2, $3, $4, $5::numeric / 100)`,
				id, line, products[s.rnd.IntN(len(products))], quantity, cents); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `INSERT INTO orders VALUES ($1, $2, 'new', $3::numeric / 100, now())`, id, 1+s.rnd.Int64N(customers), total)
		return err
	})
	if err == nil {
		s.nextOrder++
	}
	return err
}

// deleteOrders cancels the oldest order, or what is beyond the shop's size.
func (s *shop) deleteOrders(ctx context.Context) error {
	upTo := max(s.oldest, s.nextOrder-1-maxOrders)
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM order_items WHERE order_id <= $1`, upTo); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM orders WHERE id <= $1`, upTo)
		return err
	})
	if err == nil {
		s.oldest = upTo + 1
	}
	return err
}
