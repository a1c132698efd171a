package sam

import "errors"

// Table is a DynamoDB table.
type Table struct {
	ID, Name   string
	Attributes []Attribute
	Key        []Key
	Global     []Index
	Local      []Index
	// StreamView is the view type of the stream; "" without a stream.
	StreamView string
	// TTL is the attribute of the time to live; "" without one.
	TTL string
}

// Attribute is an attribute of a key, with its type S, N or B.
type Attribute struct{ Name, Type string }

// Key is one part of a key: an attribute with its role, HASH or RANGE.
type Key struct{ Attribute, Role string }

// Index is a secondary index.
type Index struct {
	Name       string
	Key        []Key
	Projection string // ALL, KEYS_ONLY or INCLUDE
	NonKey     []string
}

// Tables returns the template's tables in the template's order, and after them the tables
// of nested templates.
func (t *Template) Tables() ([]Table, error) {
	var out []Table
	var errs []error
	for in := range t.all() {
		for _, r := range in.resources {
			if r.kind != typeTable && r.kind != typeSimpleTable {
				continue
			}
			table, err := in.table(r)
			out = append(out, table)
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

func (t *Template) table(r resource) (Table, error) {
	p := t.props(r)
	table := Table{ID: t.full(r.id)}
	name, err := t.name(r)
	if err != nil {
		return table, err
	}
	table.Name = name
	if r.kind == typeSimpleTable {
		key := p.mapping("PrimaryKey")
		name, kind := "id", "S"
		if key.node != nil {
			name = key.required("Name")
			kind = map[string]string{"String": "S", "Number": "N", "Binary": "B"}[key.required("Type")]
		}
		table.Attributes = []Attribute{{Name: name, Type: kind}}
		table.Key = []Key{{Attribute: name, Role: "HASH"}}
		return table, p.err()
	}
	for a := range p.items("AttributeDefinitions") {
		table.Attributes = append(table.Attributes, Attribute{Name: a.required("AttributeName"), Type: a.required("AttributeType")})
	}
	table.Key = keySchema(p)
	table.Global = indexes(p, "GlobalSecondaryIndexes")
	table.Local = indexes(p, "LocalSecondaryIndexes")
	table.StreamView = p.mapping("StreamSpecification").str("StreamViewType")
	if ttl := p.mapping("TimeToLiveSpecification"); ttl.boolean("Enabled") {
		table.TTL = ttl.required("AttributeName")
	}
	if len(table.Key) == 0 {
		p.fail("", errors.New("KeySchema is missing"))
	}
	return table, p.err()
}

func keySchema(p *props) []Key {
	var key []Key
	for k := range p.items("KeySchema") {
		key = append(key, Key{Attribute: k.required("AttributeName"), Role: k.required("KeyType")})
	}
	return key
}

func indexes(p *props, name string) []Index {
	var out []Index
	for i := range p.items(name) {
		projection := i.mapping("Projection")
		out = append(out, Index{
			Name:       i.required("IndexName"),
			Key:        keySchema(i),
			Projection: projection.str("ProjectionType"),
			NonKey:     projection.strs("NonKeyAttributes"),
		})
	}
	return out
}
