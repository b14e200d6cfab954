"""Spark with Iceberg's own Java library: the reference judge of what is in the files, and a writer of what we read."""

import datetime
import decimal
import os
import pathlib
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
JARS = ROOT / ".cache" / "jars"


class Spark:
    """One JVM with a SQL catalog `j` (SQLite) over a warehouse folder, at most 1 GB of heap."""

    def __init__(self, folder):
        from pyspark.sql import SparkSession

        jars = sorted(JARS.glob("*.jar"))
        assert len(jars) == 2, f"{JARS} holds {jars}: run test/setup.sh"
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.database = self.folder / "catalog.db"
        os.environ["TZ"] = "UTC"
        catalog = "spark.sql.catalog.j"
        builder = SparkSession.builder.master("local[1]")
        for key, value in {
            "spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC",
            "spark.log.level": "ERROR", "spark.jars": ",".join(map(str, jars)), "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(self.folder / "local"), "spark.sql.warehouse.dir": str(self.folder / "unused"),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            catalog: "org.apache.iceberg.spark.SparkCatalog", catalog + ".type": "jdbc", catalog + ".uri": f"jdbc:sqlite:{self.database}",
            catalog + ".warehouse": str(self.folder / "warehouse"), catalog + ".jdbc.schema-version": "V1", catalog + ".cache-enabled": "false",
        }.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        self.jvm = self.session.sparkContext._jvm
        self.names = 0
        self.sql("CREATE NAMESPACE IF NOT EXISTS j.s")

    def stop(self):
        self.session.stop()
        from pyspark import SparkContext
        if SparkContext._gateway is not None:
            SparkContext._gateway.shutdown()
            SparkContext._gateway.proc.stdin.close()  # the JVM ends when its input does
            SparkContext._gateway.proc.wait(60)
            SparkContext._gateway = None
            SparkContext._jvm = None

    def sql(self, text):
        return self.session.sql(text).collect()

    def rows(self, table, columns="*", snapshot=None):
        at = f" VERSION AS OF {snapshot}" if snapshot else ""
        return bag(self.sql(f"SELECT {columns} FROM {table}{at}"))

    def java(self, table):
        """Iceberg's own Table."""
        return self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.session._jsparkSession, table)

    def metadata(self, table):
        return self.java(table).operations().current().metadataFileLocation()

    def snapshots(self, table):
        return [r[0] for r in self.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at, snapshot_id")]

    def register(self, location):
        """A name for a metadata file of ours."""
        self.names += 1
        name = f"s.ours_{self.names}"
        self.sql(f"CALL j.system.register_table(table => '{name}', metadata_file => '{location}')")
        return "j." + name

    def read(self, location, columns="*"):
        return self.rows(self.register(location), columns)

    def equality_delete(self, table, keys):
        """Commits one equality delete file of one column by Iceberg's Java writers. keys is (column, values); ints are Java's Integer."""
        column, values = keys
        t = self.java(table)
        api, jvm = self.jvm.org.apache.iceberg, self.jvm
        gateway = self.session.sparkContext._gateway
        schema = t.schema().select(gateway.jvm.java.util.Collections.singletonList(column))
        out = api.io.OutputFileFactory.builderFor(t, 1, 1).format(api.FileFormat.PARQUET).build().newOutputFile()
        record_class = t.getClass().getClassLoader().loadClass("org.apache.iceberg.data.Record")  # the application loader does not see spark.jars
        ids = gateway.new_array(jvm.int, 1)
        ids[0] = schema.findField(column).fieldId()
        writer = (api.formats.FormatModelRegistry.equalityDeleteWriteBuilder(api.FileFormat.PARQUET, record_class, out)
                  .schema(schema).spec(t.spec()).equalityFieldIds(ids).build())
        for v in values:
            record = api.data.GenericRecord.create(schema)
            record.setField(column, v)
            writer.write(record)
        writer.close()
        t.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def cell(v):
    """A value as text that is the same whoever read it."""
    if isinstance(v, (bytes, bytearray, memoryview)):
        return "bytes " + bytes(v).hex()
    if isinstance(v, uuid.UUID):
        return str(v)
    if isinstance(v, decimal.Decimal):
        return "numeric " + format(v, "f")
    if isinstance(v, datetime.datetime):
        if v.tzinfo is not None:
            v = v.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return v.isoformat(timespec="microseconds")
    if isinstance(v, float):
        return "float " + repr(v)
    if isinstance(v, (list, tuple)):
        return [cell(x) for x in v]
    return v if v is None or isinstance(v, (bool, int, str)) else v.isoformat()


def bag(rows):
    """Rows without an order, duplicates kept."""
    return sorted(([cell(v) for v in r] for r in rows), key=repr)
