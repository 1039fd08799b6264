package settings

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// AddFlags adds a flag for each setting of a run; v holds their defaults, and what is parsed.
func AddFlags(fs *pflag.FlagSet, v *Values) {
	for _, s := range Table() {
		if s.Flag == "" {
			continue
		}
		s.add(fs, v)
		fs.Lookup(s.Flag).Hidden = s.Hidden
	}
}

// AddSome adds the flags of some settings, for a command that reaches a bridge as a run does; v has the defaults of all.
func AddSome(fs *pflag.FlagSet, v *Values, names ...string) {
	AddFlags(pflag.NewFlagSet("defaults", pflag.ContinueOnError), v)
	for _, s := range Table() {
		if slices.Contains(names, s.Flag) {
			s.add(fs, v)
		}
	}
}

// add adds the setting's flag. A default that cannot be read is a mistake in the table.
func (s Setting) add(fs *pflag.FlagSet, v *Values) {
	number, _ := strconv.Atoi(s.Default)
	switch p := s.at(v).(type) {
	case *string:
		fs.StringVar(p, s.Flag, s.Default, s.Help)
	case *int:
		fs.IntVar(p, s.Flag, number, s.Help)
	case *int64:
		fs.Int64Var(p, s.Flag, int64(number), s.Help)
	case *bool:
		fs.BoolVar(p, s.Flag, false, s.Help)
	case *Duration:
		limit, _ := time.ParseDuration(s.Default)
		fs.DurationVar((*time.Duration)(p), s.Flag, limit, s.Help)
	case *[]string:
		if s.Lists {
			fs.StringSliceVar(p, s.Flag, nil, s.Help)
		} else {
			fs.StringArrayVar(p, s.Flag, nil, s.Help)
		}
	case pflag.Value:
		fs.Var(p, s.Flag, s.Help)
	default:
		panic(fmt.Sprintf("the setting %s has a type that no flag has: %T", s.Flag, p))
	}
}

// urls is a flag for the URLs of replicas: the target, and more.
type urls struct {
	first *string
	more  *[]string
}

func (u *urls) String() string { return *u.first }

func (u *urls) Type() string { return "string" }

func (u *urls) Set(text string) error {
	if *u.first == "" {
		*u.first = text
		return nil
	}
	base, err := engine.BaseURL(text)
	if err != nil {
		return err
	}
	if base.User != nil {
		return errors.New("the credentials belong into the first --url")
	}
	*u.more = append(*u.more, base.String())
	return nil
}

// SecretFromEnv is the value of a variable of the table that holds a secret, or that of the file which NAME_FILE names.
func SecretFromEnv(name string) (string, error) {
	path := os.Getenv(name + "_FILE")
	if path == "" {
		return os.Getenv(name), nil
	}
	if os.Getenv(name) != "" {
		return "", &engine.UsageError{Reason: fmt.Sprintf("%s and %s_FILE are both set: set one of the two", name, name)}
	}
	value, err := (&File{}).secret(Secret{File: path})
	if err != nil {
		return "", &engine.UsageError{Reason: fmt.Sprintf("%s_FILE: %v", name, err)}
	}
	return value, nil
}

// Given is what the flags of a Go suite say.
type Given struct {
	Target     engine.Target
	Options    engine.Options
	MockListen string // HOST:PORT at which the suite puts the mock behind the bridge; "": none
	File       *File  // whose sessions are to be ended
}

// Flags adds the settings that a Go suite has to its flags, and -bridge-url, which is url by the name that go test always had. The
// environment variable BRIDGE_PAGE_SIZE stands in for -page-size, and so on; a duration there may be a number of seconds, as
// bridges read it, and a list has commas. What it returns reads flags, then variables, then the file of -config; its errors are
// those of engine.Run.
func Flags(fs *flag.FlagSet) func(ctx context.Context) (Given, error) {
	v := &Values{}
	own := pflag.NewFlagSet("bridge", pflag.ContinueOnError)
	AddFlags(own, v)
	for _, s := range Table() {
		if s.Suite {
			set := goFlag{own.Lookup(s.Flag), own}
			fs.Var(set, s.Flag, strings.ReplaceAll(s.Help, "--", "-")+" ("+s.Variable()+")")
			if s.Flag == "url" {
				fs.Var(set, "bridge-url", "the same as -url")
			}
		}
	}
	return func(ctx context.Context) (Given, error) {
		for _, s := range Table() {
			text := os.Getenv(s.Variable())
			if !s.Suite || text == "" || own.Changed(s.Flag) {
				continue
			}
			if err := s.setFromEnv(own, text); err != nil {
				return Given{}, &engine.UsageError{Reason: fmt.Sprintf("%s is %q: %v", s.Variable(), text, err)}
			}
		}
		file := &File{}
		var err error
		if v.Config != "" {
			if file, err = Load(v.Config); err != nil {
				return Given{}, &engine.UsageError{Reason: err.Error()}
			}
		}
		all, err := Resolve(file, v, own.Changed)
		if err != nil {
			return Given{}, err
		}
		g := Given{Target: all.Target(), MockListen: all.MockListen, File: &all.File}
		g.Options, err = all.Options(ctx, engine.Options{Capabilities: engine.DefaultCapabilities, Tool: reports.Tool{Name: "go test"}})
		return g, err
	}
}

// Variable is the environment variable that stands in for the setting's flag in a Go suite.
func (s Setting) Variable() string {
	return cmp.Or(s.Env, "BRIDGE_"+strings.ToUpper(strings.ReplaceAll(s.Flag, "-", "_")))
}

func (s Setting) setFromEnv(fs *pflag.FlagSet, text string) error {
	texts := []string{text}
	switch s.at(&Values{}).(type) {
	case *[]string:
		texts = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	case *Duration:
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			texts = []string{text + "s"}
		}
	}
	for _, text := range texts {
		if err := fs.Set(s.Flag, text); err != nil {
			return errors.Unwrap(err)
		}
	}
	return nil
}

// goFlag is one of our flags as package flag has it.
type goFlag struct {
	flag *pflag.Flag
	of   *pflag.FlagSet
}

func (f goFlag) String() string {
	if f.flag == nil { // flag asks the zero value for its text
		return ""
	}
	return f.flag.DefValue
}

func (f goFlag) Set(text string) error { return f.of.Set(f.flag.Name, text) }

func (f goFlag) IsBoolFlag() bool { return f.flag.Value.Type() == "bool" }

// Options fills in what the values say, over what o has. It reads secrets, opens sessions and fetches tokens.
func (v *Values) Options(ctx context.Context, o engine.Options) (engine.Options, error) {
	if v.Wire != "" && v.Wire != string(contract.Front) {
		return o, &engine.UsageError{Reason: fmt.Sprintf("--wire is %q: give front, or leave it out to count both sides", v.Wire)}
	}
	if len(v.LogIn) > 0 {
		o.Capabilities = slices.DeleteFunc(slices.Clone(o.Capabilities), func(c string) bool { return c == "auth-basic" })
	}
	o, err := v.File.Options(ctx, o)
	if err != nil {
		return o, err
	}
	o.Capabilities, err = engine.Claim(slices.Concat(o.Capabilities, v.claimed()), strings.Join(v.Claims, ","))
	return o, err
}

// claimed are the capabilities that other settings claim.
func (v *Values) claimed() []string {
	var all []string
	if v.MCPStdio != "" {
		all = append(all, "mcp-stdio")
	}
	if len(v.LogIn) > 0 {
		all = append(all, "mcp", check.OAuth)
	}
	switch {
	case v.Replicas > 1 && os.Getenv("BRIDGE_SHARED") != "":
		all = append(all, "replicas", "replicas-shared")
	case v.Replicas > 1, len(v.MoreURLs) > 0:
		all = append(all, "replicas")
	}
	return all
}
