package deploy

import (
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Terraform returns a Terraform module of one file, which creates a CloudFormation stack
// from the template [Standalone]. The module has a variable for each parameter of the
// template, with the parameter's default, and an output for each output. Names are in
// Terraform's spelling, such as kms_key_arns for KmsKeyArns. The worker's program must be
// a zip file in a bucket; the variables code_bucket and code_key name the bucket and the
// file.
func Terraform() string {
	var t struct {
		Parameters yaml.Node `yaml:"Parameters"`
		Outputs    yaml.Node `yaml:"Outputs"`
	}
	text := Standalone()
	if err := yaml.Unmarshal([]byte(text), &t); err != nil {
		panic("deploy: samekey.yaml: " + err.Error()) //nolint:forbidigo // the file is part of the program
	}
	var variables, arguments, outputs strings.Builder
	for name, p := range entries(&t.Parameters) {
		var is struct {
			Type        string `yaml:"Type"`
			Description string `yaml:"Description"`
			Default     string `yaml:"Default"`
		}
		decode(p, &is)
		list := is.Type == "CommaDelimitedList"
		snake, value := snakeCase(name), "var."+snakeCase(name)
		fmt.Fprintf(&variables, "\nvariable %q {\n  description = %q\n", snake, is.Description)
		switch optional := has(p, "Default"); {
		case list:
			value = fmt.Sprintf("join(\",\", %s)", value)
			fmt.Fprintf(&variables, "  type        = list(string)\n  default     = []\n")
		case optional:
			fmt.Fprintf(&variables, "  type        = string\n  default     = %q\n", is.Default)
		default:
			fmt.Fprintf(&variables, "  type        = string\n")
		}
		variables.WriteString("}\n")
		fmt.Fprintf(&arguments, "    %-18s = %s\n", name, value)
	}
	for name, o := range entries(&t.Outputs) {
		var is struct {
			Description string `yaml:"Description"`
		}
		decode(o, &is)
		fmt.Fprintf(&outputs, "\noutput %q {\n", snakeCase(name))
		if is.Description != "" {
			fmt.Fprintf(&outputs, "  description = %q\n  value       = ", is.Description)
		} else {
			outputs.WriteString("  value = ")
		}
		fmt.Fprintf(&outputs, "aws_cloudformation_stack.samekey.outputs[%q]\n}\n", name)
	}
	return strings.NewReplacer(
		"VARIABLES", variables.String(), "ARGUMENTS\n", arguments.String(), "OUTPUTS", outputs.String(),
		"TEMPLATE\n", strings.NewReplacer("${", "$${", "%{", "%%{").Replace(text),
	).Replace(terraform)
}

const terraform = `# Written by ` + "`samekey stack --terraform`" + `; a newer version writes it anew, so set its variables, and leave this file as it is.
# docs/operate/deploying.md has its parameters, and explains its policies.

terraform {
  required_providers {
    aws = {
      source = "hashicorp/aws"
    }
  }
}

variable "stack" {
  description = "The name of the CloudFormation stack."
  type        = string
  default     = "samekey"
}
VARIABLES
resource "aws_cloudformation_stack" "samekey" {
  name         = var.stack
  capabilities = ["CAPABILITY_IAM"]
  parameters = {
ARGUMENTS
  }

  template_body = <<EOT
TEMPLATE
EOT

  # Another name would be another stack, with an empty table: retries would run twice. Without
  # this, destroying the stack leaves its table.
  lifecycle {
    prevent_destroy = true
  }
}
OUTPUTS`

// entries yields the keys and values of a mapping, in the file's order.
func entries(mapping *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i].Value, mapping.Content[i+1]) {
				return
			}
		}
	}
}

func has(mapping *yaml.Node, key string) bool {
	for name := range entries(mapping) {
		if name == key {
			return true
		}
	}
	return false
}

func decode(n *yaml.Node, into any) {
	if err := n.Decode(into); err != nil {
		panic("deploy: samekey.yaml: " + err.Error()) //nolint:forbidigo // the file is part of the program
	}
}

// snakeCase spells KmsKeyArns as kms_key_arns.
func snakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
