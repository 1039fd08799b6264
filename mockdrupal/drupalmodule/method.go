package drupalmodule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

const methodNamespace = `Drupal\bridgecheck_fixtures\Plugin\bridgecheck_fixtures\Method`

// methodClass is the source of a method's class: its attributes or annotation, and its output's schema.
func methodClass(class string, m *fixtures.Method, o Options) ([]byte, error) {
	output := "NULL"
	if m.Output != nil {
		var err error
		if output, err = code.schema(m.Output, "    "); err != nil {
			return nil, err
		}
	}
	tool, err := toolCode(m.MCP)
	if err != nil {
		return nil, err
	}
	uses := []string{`Drupal\bridgecheck_fixtures\Plugin\FixtureMethodBase`}
	if m.MCP != nil {
		uses = append(uses, `Drupal\jsonrpc_mcp\Attribute\McpTool`)
	}
	comment, attribute, constants := "", "", ""
	if o.JSONRPC == 2 {
		a := newAnnotation(methodNamespace + `\` + class)
		comment, err = a.method(m)
		if constants = strings.Join(a.constants, "\n"); constants != "" {
			constants += "\n"
		}
	} else {
		uses = append(uses, `Drupal\Core\StringTranslation\TranslatableMarkup`, `Drupal\jsonrpc\Attribute\JsonRpcMethod`)
		if len(m.Params) > 0 {
			uses = append(uses, `Drupal\jsonrpc\Attribute\JsonRpcParameterDefinition`)
		}
		attribute, err = attributeCode(m)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(uses, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }) // Drupal's order
	var b strings.Builder
	b.WriteString("<?php\n\ndeclare(strict_types=1);\n\nnamespace " + methodNamespace + ";\n\n")
	for _, use := range uses {
		b.WriteString("use " + use + ";\n")
	}
	b.WriteString("\n/**\n * A method of the site file.\n")
	b.WriteString(comment + " */\n" + attribute + tool)
	b.WriteString("final class " + class + " extends FixtureMethodBase {\n\n" + constants + "  /**\n   * {@inheritdoc}\n   */\n" +
		"  public static function outputSchema(): ?array {\n    return " + output + ";\n  }\n\n}\n")
	return []byte(b.String()), nil
}

// argument is a named argument of an attribute, or a member of an annotation.
type argument struct{ name, value string }

func texts(list []string) *php.Array {
	a := &php.Array{}
	for _, s := range list {
		a.Append(s)
	}
	return a
}

// headers are a method's response headers in the order in which the site shows them.
func headers(m *fixtures.Method) *php.Array {
	a := &php.Array{}
	for _, name := range slices.Sorted(maps.Keys(m.ResponseHeaders)) {
		a.Set(php.KeyOf(name), m.ResponseHeaders[name])
	}
	return a
}

// common are the arguments that both notations write in the same way.
func (n notation) common(m *fixtures.Method, indent string) ([]argument, error) {
	access, err := n.value(texts(m.Access), indent)
	if err != nil {
		return nil, err
	}
	arguments := []argument{{"access", access}}
	if len(m.ResponseHeaders) > 0 {
		text, err := n.value(headers(m), indent)
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, argument{"responseHeaders", text})
	}
	return arguments, nil
}

func attributeCode(m *fixtures.Method) (string, error) {
	arguments := []argument{{"id", codeText(m.ID)}, {"usage", "new TranslatableMarkup(" + codeText(m.Usage) + ")"}}
	common, err := code.common(m, "  ")
	if err != nil {
		return "", err
	}
	params, err := code.params(m, parameterCode)
	if err != nil {
		return "", err
	}
	if m.Output != nil { // the annotation has no such property: there outputSchema() says it
		text, err := code.schema(m.Output, "  ")
		if err != nil {
			return "", err
		}
		common = append(common, argument{"output", text})
	}
	return attributeText("JsonRpcMethod", slices.Concat(arguments, common, params)), nil
}

// params is the argument params: it is always there, for without it a method may refuse even an empty object.
func (n notation) params(m *fixtures.Method, definition func(fixtures.Param) (string, error)) ([]argument, error) {
	if m.NullParams {
		return []argument{{"params", n.null}}, nil
	}
	if len(m.Params) == 0 {
		return []argument{{"params", n.open + n.close}}, nil
	}
	var b strings.Builder
	b.WriteString(n.open + "\n")
	for _, p := range m.Params {
		text, err := definition(p)
		if err != nil {
			return nil, err
		}
		b.WriteString("    ")
		if !m.ByPosition {
			b.WriteString(n.key(php.KeyOf(p.Name)) + n.arrow)
		}
		b.WriteString(text + ",\n")
	}
	return []argument{{"params", b.String() + "  " + n.close}}, nil
}

func attributeText(class string, arguments []argument) string {
	var b strings.Builder
	b.WriteString("#[" + class + "(\n")
	for _, a := range arguments {
		b.WriteString("  " + a.name + ": " + a.value + ",\n")
	}
	b.WriteString(")]\n")
	return b.String()
}

func parameterCode(p fixtures.Param) (string, error) {
	schema, factory, description, required := "NULL", "NULL", "NULL", "FALSE"
	if p.Factory != "" {
		factory = codeText(p.FactoryClass()) // with a leading backslash or not: the site shows it as it is
	}
	if p.Factory == "" || p.Schema != nil {
		var err error
		if schema, err = code.schema(p.Resolved(), "      "); err != nil {
			return "", fmt.Errorf("parameter %q: %w", p.Name, err)
		}
	}
	if p.Description != "" {
		description = "new TranslatableMarkup(" + codeText(p.Description) + ")"
	}
	if p.Required {
		required = "TRUE"
	}
	return "new JsonRpcParameterDefinition(\n      " +
		strings.Join([]string{codeText(p.Name), schema, factory, description, required}, ",\n      ") + ",\n    )", nil
}

// toolCode is the McpTool attribute, which both lines of the jsonrpc module have as an attribute.
func toolCode(tool *fixtures.Tool) (string, error) {
	if tool == nil {
		return "", nil
	}
	var arguments []argument
	if tool.Title != "" {
		arguments = append(arguments, argument{"title", codeText(tool.Title)})
	}
	if tool.Annotations != nil {
		v, err := php.Decode(tool.Annotations)
		if err != nil {
			return "", err
		}
		// McpTool takes no list, and an empty array is one.
		if a, ok := v.(*php.Array); ok && !a.IsList() {
			text, err := code.value(a, "  ")
			if err != nil {
				return "", err
			}
			arguments = append(arguments, argument{"annotations", text})
		}
	}
	if len(arguments) == 0 {
		return "#[McpTool]\n", nil
	}
	return attributeText("McpTool", arguments), nil
}

// method is the annotation of a method, as lines of a comment.
func (a *annotation) method(m *fixtures.Method) (string, error) {
	arguments := []argument{{"id", a.text(m.ID)}, {"usage", "@Translation(" + a.text(m.Usage) + ")"}}
	common, err := a.common(m, "  ")
	if err != nil {
		return "", err
	}
	params, err := a.params(m, a.parameter)
	if err != nil {
		return "", err
	}
	lines := []string{"", "@JsonRpcMethod("}
	for _, each := range slices.Concat(arguments, common, params) {
		lines = append(lines, strings.Split("  "+each.name+" = "+each.value+",", "\n")...)
	}
	lines = append(lines, ")")
	for i, line := range lines {
		lines[i] = strings.TrimRight(" * "+line, " ")
	}
	return strings.Join(lines, "\n") + "\n", nil
}

func (a *annotation) parameter(p fixtures.Param) (string, error) {
	var arguments []string
	if p.Factory != "" {
		arguments = append(arguments, "factory = "+a.text(p.FactoryClass()))
	}
	if p.Factory == "" || p.Schema != nil {
		schema, err := a.schema(p.Resolved(), "      ")
		if err != nil {
			return "", fmt.Errorf("parameter %q: %w", p.Name, err)
		}
		arguments = append(arguments, "schema = "+schema)
	}
	if p.Description != "" {
		arguments = append(arguments, "description = @Translation("+a.text(p.Description)+")")
	}
	if p.Required {
		arguments = append(arguments, "required = true")
	}
	return "@JsonRpcParameterDefinition(\n      " + strings.Join(arguments, ",\n      ") + ",\n    )", nil
}
