package cli

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog/mount"
)

// load is loadConfig of a subcommand after its flags were parsed.
func load(t *testing.T, cmd *cobra.Command, args ...string) (*Config, error) {
	t.Helper()
	require.NoError(t, cmd.ParseFlags(args))
	return loadConfig(cmd)
}

// A flag wins over the environment, the environment over the file, the file over the default.
func TestPrecedence(t *testing.T) {
	file := write(t, "skade.yaml", "data: from-file\nthreads: 3\nmax-connections: 5\nretain-age: 36h\ndemo: true\n")
	t.Setenv("SKADE_PG_THREADS", "4")
	t.Setenv("SKADE_PG_MAX_CONNECTIONS", "6")
	c, err := load(t, newServe(), "--config", file, "--max-connections", "7")
	require.NoError(t, err)
	require.Equal(t, "from-file", c.Data)
	require.Equal(t, 4, c.Threads)
	require.Equal(t, 7, c.MaxConnections)
	require.Equal(t, 36*time.Hour, c.RetainAge)
	require.True(t, c.Demo)
	require.Equal(t, DefaultListen, c.Listen)
}

func TestDefaults(t *testing.T) {
	c, err := load(t, newServe())
	require.NoError(t, err)
	require.Equal(t, &Config{
		Data: DefaultData, Listen: DefaultListen, Database: DefaultDatabase, LogLevel: "info", MaxConnections: 100, HeapLimit: "640MB", TempLimit: "8GB", DrainSeconds: 10,
		RetainAge: 7 * 24 * time.Hour, RetainSnapshots: 100, RetainDropped: 7 * 24 * time.Hour, RetainLog: 30 * 24 * time.Hour, MaintenanceInterval: 10 * time.Minute,
		AllowRoot: []string{}, MountInterval: mount.DefaultInterval,
	}, c)
}

// Every flag of every subcommand is a field, an environment variable and a key of the file.
func TestEveryFlagIsVariableAndKey(t *testing.T) {
	fields := map[string]int{}
	for i := range reflect.TypeFor[Config]().NumField() {
		fields[reflect.TypeFor[Config]().Field(i).Tag.Get("mapstructure")] = i
	}
	value := map[string]string{"bool": "true", "int": "17", "string": "text", "duration": "90m0s", "stringArray": "/a"}
	for _, newCommand := range []func() *cobra.Command{newServe, newCheck} {
		newCommand().Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "config" || f.Name == "help" {
				return
			}
			i, ok := fields[f.Name]
			require.True(t, ok, "flag %s has no field", f.Name)
			want := value[f.Value.Type()]
			require.NotEmpty(t, want, f.Value.Type())
			t.Run(f.Name, func(t *testing.T) {
				env := "SKADE_PG_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
				check := func(c *Config) {
					v := reflect.ValueOf(*c).Field(i)
					switch f.Value.Type() {
					case "bool":
						require.True(t, v.Bool())
					case "int":
						require.Equal(t, int64(17), v.Int())
					case "duration":
						require.Equal(t, 90*time.Minute, v.Interface())
					case "stringArray":
						require.Equal(t, []string{"/a"}, v.Interface())
					default:
						require.Equal(t, want, v.String())
					}
				}
				c, err := load(t, newCommand(), "--config", write(t, "c.yaml", f.Name+": "+want+"\n"))
				require.NoError(t, err)
				check(c)
				t.Setenv(env, want)
				c, err = load(t, newCommand())
				require.NoError(t, err)
				check(c)
			})
		})
	}
}

func TestWrongConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		file, ext, env, want string
		args                 []string
	}{
		"unknown key":    {file: "listne: x\n", want: `unknown key "listne"`},
		"no YAML":        {file: "data: [\n", want: "configuration file"},
		"no TOML":        {file: "data = \n", ext: "toml", want: "configuration file"},
		"not a number":   {env: "many", want: "threads"},
		"negative":       {env: "-1", want: "threads must not be negative: -1"},
		"negative age":   {args: []string{"--retain-age", "-1h"}, want: "retain-age must not be negative"},
		"short interval": {args: []string{"--mount-interval", "1ms"}, want: "mount-interval must not be less than 100ms"},
		"empty folder":   {args: []string{"--data", ""}, want: "data must not be empty"},
		"missing file":   {args: []string{"--config", "/does/not/exist.yaml"}, want: "configuration file /does/not/exist.yaml does not exist"},
		"empty database": {args: []string{"--database", ""}, want: "database must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			args := c.args
			if c.file != "" {
				ext := c.ext
				if ext == "" {
					ext = "yaml"
				}
				args = append(args, "--config", write(t, "c."+ext, c.file))
			}
			if c.env != "" {
				t.Setenv("SKADE_PG_THREADS", c.env)
			}
			_, err := load(t, newServe(), args...)
			require.ErrorIs(t, err, errUsage)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// One file serves both subcommands: a key of the other one is no error.
func TestOneFileForAll(t *testing.T) {
	file := write(t, "skade.toml", "listen = \"127.0.0.1:0\"\nurl = \"postgres://x@y/z\"\n")
	_, err := load(t, newServe(), "--config", file)
	require.NoError(t, err)
	c, err := load(t, newCheck(), "--config", file)
	require.NoError(t, err)
	require.Equal(t, "postgres://x@y/z", c.URL)
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "1000000": 1000000, "512MB": 512 << 20, "4GiB": 4 << 30, " 4 gb ": 4 << 30, "16kB": 16 << 10, "1B": 1,
	} {
		n, err := parseBytes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"12XB", "MB", "-1GB", "1.5GB", "0", "4GB4", "9223372036854775807GB", "1e3"} {
		_, err := parseBytes(text)
		require.ErrorIs(t, err, errUsage, text)
	}
}

// The README's table has every flag of serve.
func TestReadmeNamesEveryFlag(t *testing.T) {
	text, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	newServe().Flags().VisitAll(func(f *pflag.Flag) {
		require.Contains(t, string(text), "`--"+f.Name+"`")
	})
}
