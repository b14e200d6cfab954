package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/nordisk/skade-pg/catalog/mount"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// Defaults. 5442 is next to PostgreSQL's own port, without colliding with it.
const (
	DefaultData     = "./skade-data"
	DefaultListen   = "127.0.0.1:5442"
	DefaultDatabase = "skade"
	DefaultUser     = "skade"
)

// Config is every option of serve and check.
type Config struct {
	Data            string        `mapstructure:"data"`
	AllowRoot       []string      `mapstructure:"allow-root"`
	MountInterval   time.Duration `mapstructure:"mount-interval"`
	Listen          string        `mapstructure:"listen"`
	HTTP            string        `mapstructure:"http"`
	Demo            bool          `mapstructure:"demo"`
	Database        string        `mapstructure:"database"`
	AuthFile        string        `mapstructure:"auth-file"`
	TLSCert         string        `mapstructure:"tls-cert"`
	TLSKey          string        `mapstructure:"tls-key"`
	MaxConnections  int           `mapstructure:"max-connections"`
	MemoryLimit     string        `mapstructure:"memory-limit"`
	HeapLimit       string        `mapstructure:"heap-limit"`
	TempLimit       string        `mapstructure:"temp-limit"`
	Threads         int           `mapstructure:"threads"`
	LogLevel        string        `mapstructure:"log-level"`
	DrainSeconds    int           `mapstructure:"drain-seconds"`
	RetainAge       time.Duration `mapstructure:"retain-age"`
	RetainSnapshots int           `mapstructure:"retain-snapshots"`
	RetainDropped   time.Duration `mapstructure:"retain-dropped"`
	RetainLog       time.Duration `mapstructure:"retain-log"`
	// MaintenanceInterval is how often tables are maintained in the background; 0 never.
	MaintenanceInterval time.Duration `mapstructure:"maintenance-interval"`
	// Hooks see what changes the disk, and may make it fail: for tests.
	Hooks *storeio.Hooks `mapstructure:"-"`
	// URL is check's: the server to ask.
	URL string `mapstructure:"url"`
	// Clock gives commits their time; nil is the machine's. No flag sets it.
	Clock func() time.Time `mapstructure:"-"`
}

// validate refuses numbers that mean nothing. The zero value of a field that serve alone has is what check leaves there.
func (c *Config) validate() error {
	for _, n := range []struct {
		flag  string
		value int
	}{{"max-connections", c.MaxConnections}, {"threads", c.Threads}, {"drain-seconds", c.DrainSeconds}, {"retain-snapshots", c.RetainSnapshots}} {
		if n.value < 0 {
			return usagef("%s must not be negative: %d", n.flag, n.value)
		}
	}
	if c.MountInterval != 0 && c.MountInterval < mount.MinInterval {
		return usagef("mount-interval must not be less than %s: %s", mount.MinInterval, c.MountInterval)
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"retain-age", c.RetainAge}, {"retain-dropped", c.RetainDropped}, {"retain-log", c.RetainLog}, {"maintenance-interval", c.MaintenanceInterval}} {
		if d.value < 0 {
			return usagef("%s must not be negative: %s", d.flag, d.value)
		}
	}
	if c.Database == "" {
		return usagef("database must not be empty")
	}
	if c.Data == "" {
		return usagef("data must not be empty")
	}
	return nil
}

// commonFlags declares what serve and check share.
func commonFlags(f *pflag.FlagSet) {
	f.String("config", "", "configuration file (YAML, TOML or JSON; keys are the flags' names)")
	f.String("data", DefaultData, "folder of the warehouse")
	f.String("database", DefaultDatabase, "name of the database that clients connect to")
	f.String("log-level", "info", "debug, info, warn or error")
}

// loadConfig reads flags, then environment (SKADE_PG_DATA …), then the file.
func loadConfig(cmd *cobra.Command) (*Config, error) {
	v := viper.New()
	v.SetEnvPrefix("SKADE_PG")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if err := v.BindPFlags(cmd.Flags()); err != nil {
		return nil, fmt.Errorf("bind flags: %w", err)
	}
	if file := v.GetString("config"); file != "" {
		v.SetConfigFile(file)
		if err := v.ReadInConfig(); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, usagef("configuration file %s does not exist", file)
			}
			return nil, usagef("configuration file %s: %w", file, err)
		}
		for _, key := range v.AllKeys() {
			if cmd.Flags().Lookup(key) == nil && key != "help" && !known(key) {
				return nil, usagef("configuration file %s: unknown key %q", file, key)
			}
		}
	}
	c := &Config{}
	if err := v.Unmarshal(c); err != nil {
		return nil, usagef("%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return c, c.validate()
}

// known reports keys of any subcommand: one file serves all.
func known(key string) bool {
	return newServe().Flags().Lookup(key) != nil || newCheck().Flags().Lookup(key) != nil
}

// parseBytes reads a size such as 512MB, 4GiB or 1000000; 0 for "".
func parseBytes(s string) (int64, error) {
	text := strings.ToUpper(strings.TrimSpace(s))
	if text == "" {
		return 0, nil
	}
	units := []struct {
		suffix string
		size   int64
	}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"B", 1}, {"", 1}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		var n int64
		if _, err := fmt.Sscanf(strings.TrimSpace(digits)+"\n", "%d\n", &n); err == nil && n > 0 && n <= math.MaxInt64/u.size {
			return n * u.size, nil
		}
	}
	return 0, usagef("%q is not a size: write 512MB or 4GB", s)
}
