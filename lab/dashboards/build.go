package dashboards

import "strings"

var prometheus = &Datasource{Type: "prometheus", UID: "${datasource}"}

const instances = `job=~"$job",namespace=~"$namespace",instance=~"$instance"`

// selections are the short forms used in expressions.
var selections = strings.NewReplacer(
	"$c", `client_id=~"$client",grant_type=~"$grant",`+instances,
	"$k", `client_id=~"$client",`+instances,
	"$i", instances,
	"$__", "$__", // Grafana's own variables are not replaced
)

func query(expr, legend string) Target {
	return Target{Expr: selections.Replace(expr), LegendFormat: legend, Range: true, Datasource: prometheus}
}

// now is a query for the newest values only, for tables.
func now(expr string) Target {
	return Target{Expr: selections.Replace(expr), Instant: true, Format: "table", Datasource: prometheus}
}

// sized sets the width, of 24, and the height.
func (p Panel) sized(w, h int) Panel {
	p.GridPos.W, p.GridPos.H = w, h
	return p
}

// with adds an override.
func (p Panel) with(o Override) Panel {
	p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, o)
	return p
}

// stacked draws the lines as areas on top of each other.
func (p Panel) stacked() Panel {
	p.FieldConfig.Defaults.Custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
	p.FieldConfig.Defaults.Custom["fillOpacity"] = 30
	return p
}

// signed lets the axis go below zero.
func (p Panel) signed() Panel {
	p.FieldConfig.Defaults.Min = nil
	return p
}

// warn colours values from yellow on, and from red on.
func (p Panel) warn(yellow, red float64) Panel {
	p.FieldConfig.Defaults.Thresholds = &Thresholds{Mode: "absolute", Steps: []Step{
		{Color: "green"}, {Color: "yellow", Value: &yellow}, {Color: "red", Value: &red},
	}}
	if p.Type == "timeseries" {
		p.FieldConfig.Defaults.Custom["thresholdsStyle"] = map[string]any{"mode": "dashed"}
	}
	return p
}

// lines is a chart over time, half as wide as the dashboard.
func lines(title, description, unit string, targets ...Target) Panel {
	zero := 0.0
	return Panel{
		Type: "timeseries", Title: title, Description: description, Datasource: prometheus,
		Targets: targets, GridPos: GridPos{W: 12, H: 8},
		FieldConfig: &FieldConfig{
			Defaults: FieldDefaults{
				Unit: unit, Min: &zero,
				Color: map[string]any{"mode": "palette-classic-by-name"},
				Custom: map[string]any{
					"drawStyle": "line", "lineWidth": 1, "fillOpacity": 8, "showPoints": "never", "spanNulls": false,
				},
			},
			Overrides: []Override{},
		},
		Options: map[string]any{
			"legend":  map[string]any{"displayMode": "table", "placement": "bottom", "showLegend": true, "calcs": []string{"mean", "max"}},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		},
	}
}

// number is the newest value in large digits.
func number(title, description, unit, expr string) Panel {
	return Panel{
		Type: "stat", Title: title, Description: description, Datasource: prometheus,
		Targets: []Target{query(expr, title)}, GridPos: GridPos{W: 4, H: 4},
		FieldConfig: &FieldConfig{Defaults: FieldDefaults{Unit: unit}, Overrides: []Override{}},
		Options: map[string]any{
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
			"colorMode":     "value", "graphMode": "area", "textMode": "value",
		},
	}
}

// column is one query of a table and the heading of its values.
type column struct {
	heading, unit string
	target        Target
}

// table merges the queries of its columns by their labels, sorted by the first column.
func table(title, description string, columns ...column) Panel {
	p := Panel{
		Type: "table", Title: title, Description: description, Datasource: prometheus,
		GridPos:     GridPos{W: 12, H: 8},
		FieldConfig: &FieldConfig{Overrides: []Override{}},
		Options:     map[string]any{"showHeader": true},
	}
	rename := map[string]string{}
	for i, c := range columns {
		value := "Value"
		if len(columns) > 1 {
			value = "Value #" + refID(i)
		}
		rename[value] = c.heading
		p.Targets = append(p.Targets, c.target)
		p = p.with(byName(c.heading, Property{"unit", c.unit}))
	}
	p.Options["sortBy"] = []map[string]any{{"displayName": columns[0].heading, "desc": true}}
	p.Transformations = []map[string]any{
		{"id": "merge", "options": map[string]any{}},
		{"id": "organize", "options": map[string]any{
			"excludeByName": map[string]bool{"Time": true, "job": true},
			"renameByName":  rename,
		}},
	}
	return p
}

// row is a heading over the panels that follow.
func row(title string) Panel {
	open := false
	return Panel{Type: "row", Title: title, GridPos: GridPos{W: 24, H: 1}, Collapsed: &open}
}

// byName is an override for the series or column of that name.
func byName(name string, ps ...Property) Override {
	return Override{Matcher{"byName", name}, ps}
}

// byRegexp is an override for series with matching names.
func byRegexp(expr string, ps ...Property) Override {
	return Override{Matcher{"byRegexp", expr}, ps}
}

// limitLine draws a series as a limit: thick, in that colour unless it is empty, dashed if asked.
func limitLine(colour string, dashed bool) []Property {
	ps := []Property{{"custom.fillOpacity", 0}, {"custom.lineWidth", 2}}
	if colour != "" {
		ps = append(ps, Property{"color", map[string]any{"mode": "fixed", "fixedColor": colour}})
	}
	if dashed {
		ps = append(ps, Property{"custom.lineStyle", map[string]any{"fill": "dash", "dash": []int{10, 10}}})
	}
	return ps
}

// dotted draws a series that no limit applies to.
func dotted() []Property {
	return []Property{{"custom.fillOpacity", 0}, {"custom.lineStyle", map[string]any{"fill": "dot", "dash": []int{0, 6}}}}
}

func refID(i int) string { return "ABCDEFGH"[i : i+1] }

// dashboard places the panels from left to right in rows, in that order, and numbers them.
func dashboard(uid, title, description string, variables []Variable, panels ...Panel) Dashboard {
	x, y, high := 0, 0, 0
	for i := range panels {
		p := &panels[i]
		p.ID = i + 1
		if x+p.GridPos.W > 24 {
			x, y, high = 0, y+high, 0
		}
		p.GridPos.X, p.GridPos.Y = x, y
		x, high = x+p.GridPos.W, max(high, p.GridPos.H)
		for t := range p.Targets {
			p.Targets[t].RefID = refID(t)
		}
	}
	return Dashboard{
		UID: uid, Title: title, Description: description, Tags: []string{"oauth-server"},
		SchemaVersion: 39, Version: 1, Editable: true, GraphTooltip: 1, Refresh: "10s",
		Timezone: "browser", Time: TimeRange{"now-30m", "now"},
		Links: []Link{{
			Type: "dashboards", Title: "oauth-server", Tags: []string{"oauth-server"},
			AsDropdown: true, IncludeVars: true, KeepTime: true,
		}},
		Annotations: Annotations{changes()}, Templating: Templating{append(sources(), variables...)}, Panels: panels,
	}
}
