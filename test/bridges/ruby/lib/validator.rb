# frozen_string_literal: true

require_relative "formats"
require_relative "json_text"
require_relative "pattern"

# Validates values against a schema that Schema has made: it holds no references.
class Validator
  Mismatch = Struct.new(:parameter, :expected, :value) do
    def received = "#{Validator.type_of(value)} #{Validator.shown(value)}".strip

    def to_s = "#{parameter.empty? ? "the value" : parameter}: expected #{expected}, received #{received}"

    def to_json(*) = JSON.generate(parameter:, expected:, received:)
  end
  Missing = Class.new(Mismatch) do
    def received = "nothing"
  end

  def self.type_of(value)
    case value
    when nil then "null"
    when true, false then "boolean"
    when String then "string"
    when Array then "array"
    when Hash then "object"
    else JsonText.integer?(value) ? "integer" : "number"
    end
  end

  def self.shown(value)
    return "" if value.nil? || value.is_a?(Array) || value.is_a?(Hash)

    text = JSON.generate(value)
    text.size > 80 ? "" : text
  end

  def initialize(schema)
    @schema = schema
  end

  # What is wrong with the value, as a list.
  def mismatches(value)
    found = []
    check(@schema, value, "", found)
    found
  end

  private

  def valid?(schema, value)
    found = []
    check(schema, value, "", found)
    found.empty?
  end

  def check(schema, value, path, found)
    return if schema == true
    return found << Mismatch.new(path, "nothing here", value) if schema == false

    type = schema["type"]
    if type && Array(type).none? { |one| type?(one, value) }
      return found << Mismatch.new(path, Array(type).join(" or "), value)
    end

    any(schema, value, path, found)
    case value
    when String then string(schema, value, path, found)
    when Array then array(schema, value, path, found)
    when Hash then object(schema, value, path, found)
    else number(schema, value, path, found) if JsonText.number?(value)
    end
  end

  def type?(type, value)
    case type
    when "number" then JsonText.number?(value)
    when "integer" then JsonText.integer?(value)
    else Validator.type_of(value) == type
    end
  end

  def any(schema, value, path, found)
    fails = ->(expected) { found << Mismatch.new(path, expected, value) }
    if schema.key?("enum") && schema["enum"].none? { |one| JsonText.same?(one, value) }
      fails.("one of #{JSON.generate(schema["enum"])}")
    end
    fails.(JSON.generate(schema["const"])) if schema.key?("const") && !JsonText.same?(schema["const"], value)
    schema.fetch("allOf", []).each { |one| check(one, value, path, found) }
    fails.("one of several forms") if schema.key?("anyOf") && schema["anyOf"].none? { |one| valid?(one, value) }
    fails.("exactly one of several forms") if schema.key?("oneOf") && schema["oneOf"].count { |one| valid?(one, value) } != 1
    fails.("another form") if schema.key?("not") && valid?(schema["not"], value)
    return unless schema.key?("if")

    branch = valid?(schema["if"], value) ? "then" : "else"
    check(schema.fetch(branch, true), value, path, found)
  end

  def number(schema, value, path, found)
    fails = ->(expected) { found << Mismatch.new(path, expected, value) }
    exact = value.to_r
    limit = ->(keyword) { schema[keyword]&.to_r }
    fails.("at least #{schema["minimum"].to_json}") if (bound = limit.("minimum")) && exact < bound
    fails.("at most #{schema["maximum"].to_json}") if (bound = limit.("maximum")) && exact > bound
    fails.("more than #{schema["exclusiveMinimum"].to_json}") if (bound = limit.("exclusiveMinimum")) && exact <= bound
    fails.("less than #{schema["exclusiveMaximum"].to_json}") if (bound = limit.("exclusiveMaximum")) && exact >= bound
    fails.("a multiple of #{schema["multipleOf"].to_json}") if (step = limit.("multipleOf")) && (exact / step).denominator != 1
  end

  def string(schema, value, path, found)
    fails = ->(expected) { found << Mismatch.new(path, expected, value) }
    size(schema, value.length, "Length", "characters", fails)
    fails.("a text that matches #{schema["pattern"]}") if schema.key?("pattern") && !Pattern.to_regexp(schema["pattern"]).match?(value)
    fails.("the format #{schema["format"]}") if schema.key?("format") && !Formats.valid?(schema["format"], value)
  end

  def array(schema, value, path, found)
    fails = ->(expected) { found << Mismatch.new(path, expected, value) }
    size(schema, value.size, "Items", "elements", fails)
    fails.("elements that differ") if schema["uniqueItems"] && value.map { |one| JsonText.canonical(one) }.uniq.size < value.size
    fails.("an element of another form") if schema.key?("contains") && value.none? { |one| valid?(schema["contains"], one) }

    items = schema.fetch("items", true)
    value.each_with_index do |element, index|
      one = items.is_a?(Array) ? items.fetch(index) { schema.fetch("additionalItems", true) } : items
      check(one, element, "#{path}[#{index}]", found)
    end
  end

  def object(schema, value, path, found)
    fails = ->(expected) { found << Mismatch.new(path, expected, value) }
    size(schema, value.size, "Properties", "members", fails)
    schema.fetch("required", []).each do |name|
      found << Missing.new(below(path, name), expected_of(schema, name), nil) unless value.key?(name)
    end
    value.each_key { |name| fails.("other names than #{name}") unless valid?(schema.fetch("propertyNames", true), name) }
    dependencies(schema, value, path, found)
    members(schema, value, path, found)
  end

  def members(schema, value, path, found)
    properties = schema.fetch("properties", {})
    patterns = schema.fetch("patternProperties", {}).transform_keys { |pattern| Pattern.to_regexp(pattern) }
    value.each do |name, member|
      applicable = patterns.select { |pattern, _| pattern.match?(name) }.values
      applicable << properties[name] if properties.key?(name)
      applicable << schema.fetch("additionalProperties", true) if applicable.empty?
      applicable.each { |one| check(one, member, below(path, name), found) }
    end
  end

  def dependencies(schema, value, path, found)
    schema.fetch("dependencies", {}).each do |name, needs|
      next unless value.key?(name)

      if needs.is_a?(Array)
        (needs - value.keys).each { |missing| found << Missing.new(below(path, missing), "a value beside #{name}", nil) }
      else
        check(needs, value, path, found)
      end
    end
  end

  def size(schema, actual, suffix, unit, fails)
    least, most = schema.values_at("min#{suffix}", "max#{suffix}")
    fails.("at least #{least.to_json} #{unit}") if least && actual < least.to_r
    fails.("at most #{most.to_json} #{unit}") if most && actual > most.to_r
  end

  def expected_of(schema, name)
    property = schema.dig("properties", name)
    type = property["type"] if property.is_a?(Hash)
    type ? Array(type).join(" or ") : "a value"
  end

  def below(path, name) = path.empty? ? name : "#{path}.#{name}"
end
