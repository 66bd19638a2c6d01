package dashboards

// The types below are the part of Grafana's dashboard JSON (schema version 39,
// Grafana 11 and later) that is used here.

// Dashboard is one dashboard.
type Dashboard struct {
	UID           string      `json:"uid"`
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	SchemaVersion int         `json:"schemaVersion"`
	Version       int         `json:"version"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"` // 1: the crosshair is shared
	Refresh       string      `json:"refresh"`
	Timezone      string      `json:"timezone"`
	Time          TimeRange   `json:"time"`
	Links         []Link      `json:"links"`
	Annotations   Annotations `json:"annotations"`
	Templating    Templating  `json:"templating"`
	Panels        []Panel     `json:"panels"`
}

// Annotations holds queries with results that are marked in all charts.
type Annotations struct {
	List []Annotation `json:"list"`
}

// Annotation marks the times at which a query has a result.
type Annotation struct {
	Name        string      `json:"name"`
	Enable      bool        `json:"enable"`
	Datasource  *Datasource `json:"datasource"`
	IconColor   string      `json:"iconColor"`
	Expr        string      `json:"expr"`
	Step        string      `json:"step"` // between two evaluations
	TitleFormat string      `json:"titleFormat"`
}

// TimeRange is what a dashboard shows when it is opened.
type TimeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Link is a menu of the dashboards that have one of the tags.
type Link struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
}

// Templating holds the variables.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is one variable at the top of a dashboard.
type Variable struct {
	Name       string         `json:"name"`
	Label      string         `json:"label"`
	Type       string         `json:"type"`
	Query      string         `json:"query"`
	Datasource *Datasource    `json:"datasource,omitempty"`
	Refresh    int            `json:"refresh,omitempty"` // 2: when the time range changes
	Sort       int            `json:"sort,omitempty"`
	Multi      bool           `json:"multi,omitempty"`
	IncludeAll bool           `json:"includeAll,omitempty"`
	AllValue   string         `json:"allValue,omitempty"`
	Options    []Option       `json:"options,omitempty"`
	Current    map[string]any `json:"current"`
}

// Option is one value of a variable with fixed values.
type Option struct {
	Text     string `json:"text"`
	Value    string `json:"value"`
	Selected bool   `json:"selected"`
}

// Datasource identifies a data source.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Panel is one panel, or a row: the heading of the panels below it.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description,omitempty"`
	Datasource      *Datasource      `json:"datasource,omitempty"`
	GridPos         GridPos          `json:"gridPos"`
	Targets         []Target         `json:"targets,omitempty"`
	FieldConfig     *FieldConfig     `json:"fieldConfig,omitempty"`
	Options         map[string]any   `json:"options,omitempty"`
	Transformations []map[string]any `json:"transformations,omitempty"`
	Collapsed       *bool            `json:"collapsed,omitempty"`
	Panels          []Panel          `json:"panels,omitempty"`
}

// GridPos is the place and size of a panel; a dashboard is 24 wide.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Target is one query of a panel.
type Target struct {
	RefID        string      `json:"refId"`
	Expr         string      `json:"expr"`
	LegendFormat string      `json:"legendFormat,omitempty"`
	Instant      bool        `json:"instant,omitempty"`
	Range        bool        `json:"range,omitempty"`
	Format       string      `json:"format,omitempty"`
	Exemplar     bool        `json:"exemplar,omitempty"`
	Datasource   *Datasource `json:"datasource,omitempty"`
}

// FieldConfig is how values are displayed.
type FieldConfig struct {
	Defaults  FieldDefaults `json:"defaults"`
	Overrides []Override    `json:"overrides"`
}

// FieldDefaults is how values are displayed unless overridden.
type FieldDefaults struct {
	Unit       string         `json:"unit,omitempty"`
	Min        *float64       `json:"min,omitempty"`
	Decimals   *int           `json:"decimals,omitempty"`
	Color      map[string]any `json:"color,omitempty"`
	Thresholds *Thresholds    `json:"thresholds,omitempty"`
	Custom     map[string]any `json:"custom,omitempty"`
}

// Thresholds colour a value by how high it is.
type Thresholds struct {
	Mode  string `json:"mode"`
	Steps []Step `json:"steps"`
}

// Step is the colour from a value on; nil is from the lowest.
type Step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Override changes how the fields that match are displayed.
type Override struct {
	Matcher    Matcher    `json:"matcher"`
	Properties []Property `json:"properties"`
}

// Matcher selects fields.
type Matcher struct {
	ID      string `json:"id"`
	Options string `json:"options"`
}

// Property is one display option of a field.
type Property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}
