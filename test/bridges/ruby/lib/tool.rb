# frozen_string_literal: true

require_relative "json_text"
require_relative "schema"
require_relative "validator"

# One method of the site as a tool.
class Tool
  DRAFT = "http://json-schema.org/draft-07/schema#"
  MOST_BYTES = 64 * 1024

  attr_reader :name, :title, :description, :input_schema, :output_schema, :annotations

  # The tool that the text of a method describes, or nil for a method that is none.
  def self.from(text)
    method = JsonText.parse(text, depth: 100)
    attributes = method["attributes"]
    return nil unless attributes.is_a?(Hash) && !attributes["mcpTool"].nil?

    new(method["id"], attributes)
  end

  def initialize(id, attributes)
    raise Schema::Unusable, "the method has no id" unless id.is_a?(String) && !id.empty?

    @name = id
    marks = attributes["mcpTool"].is_a?(Hash) ? attributes["mcpTool"] : {}
    @title = filled(marks["title"])
    @description = filled(attributes["usage"]) || title || name
    @annotations = marks["annotations"] if marks["annotations"].is_a?(Hash)
    @input_schema = input(attributes["params"])
    @output_schema = output(attributes["output"]) unless attributes["output"].nil?
    raise Schema::Unusable, "its schemas are too large" if [input_schema, output_schema].any? { |one| JSON.generate(one).bytesize > MOST_BYTES }
  end

  def to_json(*) = @to_json ||= JSON.generate(to_h)

  def to_h
    { name:, title:, description:, inputSchema: input_schema, outputSchema: output_schema, annotations: }.compact
  end

  def mismatches(arguments) = Validator.new(input_schema).mismatches(arguments)

  private

  def filled(text) = text.is_a?(String) && !text.empty? ? text : nil

  def input(parameters)
    parameters = {} if parameters.nil? || parameters == []
    raise Schema::Unusable, "it takes its parameters by position" unless parameters.is_a?(Hash)

    required = parameters.select { |_, parameter| required?(parameter) }.keys
    schema = { "$schema" => DRAFT, "type" => "object", "properties" => parameters.transform_values { |parameter| property(parameter) } }
    required.empty? ? schema : schema.merge("required" => required)
  end

  def required?(parameter)
    return false unless parameter.is_a?(Hash)

    [parameter["attributes"], parameter["schema"]].any? { |place| place.is_a?(Hash) && place["required"] == true }
  end

  def property(parameter)
    raise Schema::Unusable, "a parameter is no object" unless parameter.is_a?(Hash)

    schema = Schema.of(parameter["schema"])
    attributes = parameter["attributes"]
    described = filled(attributes["description"]) if attributes.is_a?(Hash)
    return schema unless described

    schema = schema ? {} : { "not" => {} } unless schema.is_a?(Hash)
    schema.merge("description" => described)
  end

  # Draft 7 is named, since over MCP a schema without a name is of 2020-12.
  def output(published)
    schema = Schema.of(published)
    schema.is_a?(Hash) ? { "$schema" => DRAFT, **schema } : nil
  end
end
