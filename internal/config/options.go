package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"oauth-server/internal/strict"
)

// Option is a setting that can be given as a flag and as an environment variable.
type Option struct {
	Name  string // of the flag, without the dashes
	Path  string // of the field
	Usage string

	bounds, values, redact string // the tags range, values and redact
}

// Values returns the values that the option can have. Nil: it has no list of them.
func (o Option) Values() []string {
	if o.values == "" {
		return nil
	}
	return strings.Fields(o.values)
}

// Env is the environment variable of the option.
func (o Option) Env() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_"))
}

// IsStore reports whether the option chooses the store. Every command that uses a store
// has these options.
func (o Option) IsStore() bool { return strings.HasPrefix(o.Path, "store.") }

// IsGateway reports whether the option concerns the server behind the gateway. Only the command
// gateway has these options.
func (o Option) IsGateway() bool { return strings.HasPrefix(o.Path, "gateway.") }

// IsOwn reports whether the option concerns tokens and sign-ins of this server itself. At a gateway
// only operators use them, at the admin address.
func (o Option) IsOwn() bool {
	return slices.ContainsFunc([]string{"tokens.", "sessions.", "passwords.", "failed_attempts.", "inspection."}, func(section string) bool {
		return strings.HasPrefix(o.Path, section)
	})
}

// IsKeys reports whether the option concerns the signing keys. Commands that write keys have these
// options.
func (o Option) IsKeys() bool { return strings.HasPrefix(o.Path, "keys.") }

// Kind is the type of the option's value, for a help text: bool, int, float, duration,
// string or strings.
func (o Option) Kind() string {
	v, err := strict.At(&Config{}, o.Path)
	if err != nil {
		return "string"
	}
	switch {
	case v.Type() == reflect.TypeFor[Duration]():
		return "duration"
	case v.Kind() == reflect.Slice:
		return "strings"
	case v.Kind() == reflect.Float64:
		return "float"
	case v.Kind() == reflect.Bool:
		return "bool"
	case v.Kind() == reflect.Int, v.Kind() == reflect.Int64:
		return "int"
	}
	return "string"
}

// Default returns the value of an option that is not given, as text. It is empty for a zero value.
func (o Option) Default() string {
	c := Default()
	if o.Path == "store.mongodb.database" {
		return DefaultDatabase // Default() has no MongoDB
	}
	v, err := strict.At(c, o.Path)
	if err != nil || v.IsZero() {
		return ""
	}
	return fmt.Sprint(v.Interface())
}

// Options lists every option, in the order of a help text.
func Options() []Option { return slices.Clone(options) }

var options = optionsOf(reflect.TypeFor[Config](), "", "")

// optionsOf returns an option for each field with a help tag, at a path. If the field is a struct, its
// help begins the help of each option in it. The flag is named after the path, unless there is a flag
// tag.
func optionsOf(t reflect.Type, path, about string) (out []Option) {
	for i := range t.NumField() {
		f, at := t.Field(i), path
		if name := strict.Name(f); name != "" {
			at = strings.TrimPrefix(path+"."+name, ".")
		}
		help := strings.TrimSpace(about + " " + f.Tag.Get("help"))
		if f.Type.Kind() == reflect.Pointer {
			f.Type = f.Type.Elem()
		}
		switch {
		case f.Type.Kind() == reflect.Struct:
			out = append(out, optionsOf(f.Type, at, help)...)
		case f.Tag.Get("help") != "":
			flag := strings.TrimPrefix(strings.TrimPrefix(at, "store."), "gateway.")
			flag = strings.NewReplacer(".", "-", "_", "-").Replace(flag)
			out = append(out, Option{
				Name: cmp.Or(f.Tag.Get("flag"), flag), Path: at, Usage: help,
				bounds: f.Tag.Get("range"), values: f.Tag.Get("values"), redact: f.Tag.Get("redact"),
			})
		}
	}
	return out
}

func optionByName(name string) (Option, bool) {
	i := slices.IndexFunc(options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return Option{}, false
	}
	return options[i], true
}
