# frozen_string_literal: true

require_relative "json_text"
require_relative "tool"
require_relative "validator"

# The results of a tool as MCP has them: structured content is an object and conforms to the schema.
class Output
  def initialize(schema)
    @schema = schema
  end

  def schema
    return @schema unless wrapped?

    { "$schema" => @schema["$schema"], "type" => "object", "properties" => { "result" => @schema.except("$schema") }, "required" => ["result"] }
  end

  # The result of tools/call for the text of a method's result.
  def of(text)
    value = JsonText.parse(text)
    return { content: [{ type: "text", text: value.is_a?(String) ? value : text }] } unless @schema

    repaired = repair(@schema, value)
    return mismatch unless Validator.new(@schema).mismatches(repaired).empty?

    text = JSON.generate(repaired) unless repaired.equal?(value)
    text = %({"result":#{text}}) if wrapped?
    { content: [{ type: "text", text: }], structuredContent: JsonText::Raw.new(text) }
  end

  private

  def wrapped? = @schema["type"] != "object"

  def mismatch
    { content: [{ type: "text", text: "The result does not conform to the outputSchema of the tool." }], isError: true }
  end

  # PHP writes an empty object as []. The value itself comes back where nothing had to change.
  def repair(schema, value)
    return value unless schema.is_a?(Hash)
    return {} if value == [] && schema["type"] == "object"

    case value
    when Array
      return value unless schema["items"].is_a?(Hash)

      changed = value.map { |one| repair(schema["items"], one) }
    when Hash
      changed = value.to_h { |name, one| [name, repair(schema.dig("properties", name) || schema["additionalProperties"], one)] }
    else return value
    end
    changed == value ? value : changed
  end
end
