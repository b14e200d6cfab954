# Nothing here may reach DuckDB. Forms that wrap each of these are made by the test.
select * from read_csv('/etc/passwd')
select * from read_csv_auto('/etc/passwd')
select * from read_text('/etc/passwd')
select * from read_blob('/etc/passwd')
select * from read_parquet('/tmp/x.parquet')
select * from parquet_scan('/tmp/x.parquet')
select * from parquet_metadata('/tmp/x.parquet')
select * from parquet_schema('/tmp/x.parquet')
select * from read_json('/etc/passwd')
select * from read_json_auto('/etc/passwd')
select * from read_ndjson('/etc/passwd')
select * from sniff_csv('/etc/passwd')
select * from glob('/etc/*')
select * from duckdb_settings()
select * from duckdb_secrets()
select * from duckdb_tables()
select * from duckdb_functions()
select * from duckdb_extensions()
select * from duckdb_databases()
select * from pragma_database_list()
select * from pragma_table_info('t')
select * from pragma_storage_info('t')
select * from pragma_version()
select * from "read_csv"('/etc/passwd')
select * from main.read_csv('/etc/passwd')
select * from system.main.read_csv('/etc/passwd')
select * from pg_catalog.read_csv('/etc/passwd')
select * from skade_fn.div(1, 2)
select * from skade_pg.format_type(1, 2)
select * from skade_rel('r1')
select * from range(10)
select * from repeat_row(1, num_rows = 10)
select * from query('select 1')
select * from query_table('t')
select * from sql_auto_complete('sel')
select * from summary(1)
select * from seq_scan('t')
select * from arrow_scan(1, 2, 3)
select * from pandas_scan(1)
select * from which_secret('x', 'y')
select * from force_checkpoint()
select * from enable_logging()
select * from duckdb_logs()
select * from test_all_types()
select * from icu_calendar_names()
select * from '/etc/passwd'
select * from "/etc/passwd"
select * from "data.csv"
select * from 'data.parquet'
select * from "s3://bucket/x.parquet"
select * from duckdb_settings
select * from sqlite_master
select * from information_schema.duckdb_x
select * from main.t
select * from temp.t
select * from system.information_schema.tables
select * from pg_read_file('/etc/passwd')
select * from pg_ls_dir('/')
select * from pg_stat_file('/')
select * from pg_ls_logdir()
select * from dblink('x', 'y')
select getenv('HOME')
select "getenv"('HOME')
select main.getenv('HOME')
select pg_catalog.getenv('HOME')
select system.getenv('HOME')
select getvariable('x')
select current_setting_x('y')
select read_text('/etc/passwd')
select content from read_text('/etc/passwd')
select error('x')
select parse_path('/etc')
select nextval('x')
select currval('x')
select stats(1)
select write_log('x')
select txid_current_snapshot()
select query('select 1')
select skade_fn.div(1, 0)
select skade_num_div('1', '0')
select skade_sleep(1)
select skade_rel('r1')
select pg_read_file('/etc/passwd')
select pg_read_binary_file('/etc/passwd')
select pg_ls_dir('/')
select lo_import('/etc/passwd')
select lo_export(1, '/tmp/x')
select lo_get(1)
select pg_reload_conf()
select pg_rotate_logfile()
select pg_switch_wal()
select pg_create_restore_point('x')
select pg_logical_emit_message(true, 'a', 'b')
select pg_promote()
select pg_file_write('x', 'y', false)
select query_to_xml('select 1', true, true, '')
select table_to_xml('t', true, true, '')
select cursor_to_xml('c', 1, true, true, '')
select database_to_xml(true, true, '')
select ts_stat('select 1')
select pg_extension_config_dump('x', 'y')
select set_bit('\x00'::bytea, 1, 1)
select xmlparse(document '<a/>')
select xmlelement(name a)
select 1 @@ 2
select 1 <-> 2
select 'a' @@@ 'b'
select 1 operator(main.+) 2
select 1 operator(skade_fn.+) 2
select 'x' ^@ 'y' ^@ 'z'
select 1 ** 2
select 1 // 2
select 'x'::duckdb_type
select 'x'::hugeint
select 'x'::main.varchar
select 'x'::"struct(a int)"
select 'x'::union
select 'x'::blob
select 'x'::tinyint
select '(1,2)'::point
select '1.2.3.4'::inet
select '$1'::money
select B'101'
select '[1,2)'::int4range
select 'a b'::tsvector
select json_table('{}', '$' columns (a int path '$'))
select * from json_table('{}', '$' columns (a int path '$.a')) j
select * from xmltable('/a' passing '<a/>' columns b text)
select * from rows from (read_csv('x'))
select * from t, lateral read_csv(b)
select * from t tablesample reservoir (10)
select * from t tablesample read_csv ('x')
select (select * from read_csv('/etc/passwd') limit 1)
select array(select content from read_text('/etc/passwd'))
select exists (select 1 from read_csv('/etc/passwd'))
select a in (select content from read_text('/etc/passwd')) from t
select case when getenv('HOME') = 'x' then 1 end
select coalesce(getenv('HOME'), 'x')
select count(*) filter (where getenv('HOME') = '/root') from t
select sum(a) over (order by getenv('HOME')) from t
select a from t order by getenv('HOME')
select a from t group by getenv('HOME'), a
select a from t limit (select length(getenv('HOME')))
select array_agg(a order by getenv('X')) from t
select array[getenv('HOME')]
select row(getenv('HOME'))
select (array['a'])[length(getenv('HOME'))]
select getenv('HOME')::text collate "C"
select 'a' like getenv('HOME')
select 'a' between getenv('HOME') and 'b'
select x.* from (values (getenv('HOME'))) x
select * from t join u on getenv('HOME') = 'x'
with x as (select getenv('HOME')) select * from x
with x as (select * from read_csv('/etc/passwd')) select * from x
with recursive x as (select 1 union all select length(getenv('HOME')) from x) select * from x
select * from table_changes('read_csv', '1', '2')
select * from table_changes('/etc/passwd', '1', '2')
select * from table_at(getenv('HOME'), '1')
select * from lookup('t', getenv('HOME'))
values (getenv('HOME'))
table "/etc/passwd"
insert into t select * from read_csv('/etc/passwd')
insert into t values (1, getenv('HOME'))
insert into t values (1) returning getenv('HOME')
insert into t values (1) on conflict (a) do update set b = getenv('HOME')
insert into "/tmp/x.csv" values (1)
update t set b = getenv('HOME')
update t set b = 'x' where b = getenv('HOME')
update t set b = 'x' from read_csv('/etc/passwd') r
update t set b = 'x' returning getenv('HOME')
delete from t where b = getenv('HOME')
delete from t using read_csv('/etc/passwd') r
delete from t returning getenv('HOME')
copy t to '/tmp/x'
copy t from '/etc/passwd'
copy t to program 'sh'
copy t from program 'sh'
copy (select 1) to '/tmp/x'
copy (select 1) to program 'sh'
copy (select * from read_csv('/etc/passwd')) to stdout
copy (select getenv('HOME')) to stdout
copy (insert into t values (1) returning getenv('HOME')) to stdout
attach 'x.db'
attach ':memory:' as m
detach m
install httpfs
load httpfs
load '/tmp/x.so'
pragma database_list
pragma enable_profiling
call enable_logging()
call pragma_version()
export database '/tmp/x'
import database '/tmp/x'
use main
set variable x = 1
create macro f() as 1
create secret s (type s3)
create function f() returns int as 'select 1' language sql
create procedure p() language sql as 'select 1'
create extension dblink
create server s foreign data wrapper w
create foreign table f (a int) server s
create trigger x before insert on t execute function f()
create rule r as on select to t do instead select 1
create index on t (getenv('HOME'))
create materialized view m as select getenv('HOME')
create type x as (a int)
create domain d as int
create role r
create database d
create tablespace x location '/tmp'
create publication p
create subscription s connection 'x' publication p
create language plperl
create cast (int as text) without function
create operator + (leftarg = int, rightarg = int, function = f)
create aggregate a (int) (sfunc = f, stype = int)
create policy p on t
create statistics s on a, b from t
create event trigger e on ddl_command_start execute function f()
create access method m type table handler f
create conversion c for 'UTF8' to 'LATIN1' from f
create transform for int language sql (from sql with function f(internal))
create view x as select getenv('HOME')
create view x as select * from read_csv('/etc/passwd')
create table x as select * from read_csv('/etc/passwd')
create table x as select getenv('HOME')
create table x (a int default getenv('HOME'))
create table x (a text default (select content from read_text('/etc/passwd')))
create table x (a int references t)
create table x () inherits (t)
create table x (a int) partition by range (a)
create table x (a int) using heap
create table x (a int) tablespace y
create unlogged table x (a int)
create table x (a tinyint)
create table x (a nosuch)
select getenv('HOME') into x
select * into x from read_csv('/etc/passwd')
do 'begin end'
do $$ begin perform 1; end $$
grant select on t to public
revoke select on t from public
alter system set x = 1
alter database d set x = 1
alter role r set x = 1
alter extension e update
alter table t enable row level security
alter table t enable row level security
alter default privileges grant select on tables to public
drop function f()
drop extension e
drop database d
drop role r
drop owned by r
reassign owned by r to s
reindex table t
cluster t
refresh materialized view m
security label on table t is 'x'
merge into t using (select * from read_csv('/etc/passwd')) u on true when matched then delete
merge into t using u on getenv('HOME') = '' when matched then delete
merge into t using u on true when matched and getenv('HOME') = '' then do nothing when not matched then insert values (1)
merge into pg_class using u on true when matched then delete
merge into t using u on true when matched then delete returning *
merge into t using u on true when not matched by source then delete
prepare transaction 'x'
commit prepared 'x'
prepare p as select getenv('HOME')
prepare p as select * from read_csv('/etc/passwd')
prepare p as copy t to '/tmp/x'
explain select getenv('HOME')
explain analyze select * from read_csv('/etc/passwd')
explain (analyze, format json) select * from "/etc/passwd"
explain create table x as select getenv('HOME')
declare c cursor for select getenv('HOME')
declare c cursor for select * from read_csv('/etc/passwd')
execute p(getenv('HOME'))
set session authorization (select 1)
import foreign schema s from server x into y
comment on function f() is 'x'
comment on extension e is 'x'
with x as (delete from pg_class returning *) select * from x
with x as (delete from t returning getenv('HOME')) select * from x
with x as (insert into t select * from read_csv('/etc/passwd') returning *) select * from x
with x as (update t set a = (select count(*) from duckdb_settings()) returning *) select * from x
with x as (merge into t using u on true when matched then delete) select 1
with x as (delete from t returning *) select * from read_parquet('x'), x
select current_time
select 1 where current of c
create materialized view m as select 1
create table x (a int, exclude using gist (a with =))
create table x (a int unique deferrable)
create domain d as int check (value > 0)
create type e as enum ('a')
create table x (a int references t)
