-- The schema on which the clients were recorded, with rows of the same shape.
CREATE SCHEMA sales;
CREATE TABLE sales.orders (
    id bigint PRIMARY KEY, ts timestamptz, d date, amt numeric(12,2), note text, tags text[], doc jsonb, uid uuid,
    iv interval, f real, g double precision, b boolean, by bytea, sm smallint, i integer, vc varchar(20), tm time
);
COMMENT ON TABLE sales.orders IS 'orders table';
CREATE VIEW sales.v AS SELECT id, amt FROM sales.orders;
