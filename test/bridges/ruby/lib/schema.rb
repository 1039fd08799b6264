# frozen_string_literal: true

require "uri"

require_relative "json_text"
require_relative "pattern"

# Makes a valid Draft 7 schema that stands alone of what a site publishes: references are replaced by their targets,
# and keywords whose values the draft does not allow are left out.
class Schema
  Unusable = Class.new(StandardError)

  TYPES = %w[array boolean integer null number object string].freeze
  ONE = %w[additionalItems additionalProperties contains else if items not propertyNames then].freeze
  LISTS = %w[allOf anyOf oneOf].freeze
  MAPS = %w[properties patternProperties].freeze
  LEFT_OUT = %w[$schema $id $ref definitions $defs].freeze
  TEXTS = %w[title description format $comment contentEncoding contentMediaType].freeze
  NUMBERS = %w[minimum maximum exclusiveMinimum exclusiveMaximum].freeze
  SIZES = %w[minLength maxLength minItems maxItems minProperties maxProperties].freeze
  DEEPEST = 12
  MOST_NODES = 5000

  def self.of(published) = new(published).whole

  def initialize(published)
    @root = published
    @nodes = 0
  end

  def whole = copy(@root, 0, [])

  private

  def copy(schema, depth, references)
    return {} if schema.nil? || schema == []
    return schema if [true, false].include?(schema)
    raise Unusable, "a schema is neither an object nor a boolean" unless schema.is_a?(Hash)
    raise Unusable, "the schema is too large" if (@nodes += 1) > MOST_NODES
    return { **plain(schema.slice("type")), "$comment" => "Deeper levels are left out." } if depth > DEEPEST
    return referred(schema, depth, references) if schema.key?("$ref")

    nested = schema.to_h { |keyword, value| [keyword, subschemas(keyword, value, depth + 1, references)] }
    with_items(plain(with_required(draft4_bounds(nested), schema)))
  end

  # A reference that leads nowhere, elsewhere or in a circle allows anything.
  def referred(schema, depth, references)
    reference = schema["$ref"]
    target = references.include?(reference) ? {} : target_of(reference)
    copied = copy(target, depth, references + [reference])
    copied.is_a?(Hash) ? { **copied, **plain(schema.slice("title", "description", "default")) } : copied
  end

  def target_of(reference)
    return {} unless reference.is_a?(String) && reference.match?(%r{\A#(/|\z)})

    steps = URI.decode_www_form_component(reference.delete_prefix("#").gsub("+", "%2B")).split("/", -1).drop(1)
    steps.map { |step| step.gsub("~1", "/").gsub("~0", "~") }.reduce(@root) do |place, step|
      case place
      when Hash then place.fetch(step) { return {} }
      when Array then step.match?(/\A\d+\z/) ? place.fetch(step.to_i) { return {} } : (return {})
      else return {}
      end
    end
  rescue ArgumentError
    {}
  end

  def subschemas(keyword, value, depth, references)
    case keyword
    when "items"
      return value.map { |one| copy(one, depth, references) } if value.is_a?(Array) && !value.empty?

      copy(value, depth, references)
    when *ONE then copy(value, depth, references)
    when *LISTS then value.is_a?(Array) ? value.map { |one| copy(one, depth, references) } : value
    when *MAPS
      return {} if value == []

      value.is_a?(Hash) ? value.transform_values { |one| copy(one, depth, references) } : value
    when "dependencies"
      return {} if value == []

      value.is_a?(Hash) ? value.transform_values { |one| list_of_names?(one) && one != [] ? one : copy(one, depth, references) } : value
    else value
    end
  end

  # In Draft 4 a boolean beside the bound said that the bound itself is excluded.
  def draft4_bounds(schema)
    [%w[minimum exclusiveMinimum], %w[maximum exclusiveMaximum]].each do |bound, exclusive|
      next unless schema[exclusive] == true && JsonText.number?(schema[bound])

      schema = schema.except(bound).merge(exclusive => schema[bound])
    end
    schema
  end

  # `required: true` in a property belongs into the list of its object.
  def with_required(nested, published)
    properties = published["properties"]
    return nested unless properties.is_a?(Hash)

    names = properties.select { |_, property| property.is_a?(Hash) && property["required"] == true }.keys
    return nested if names.empty?

    listed = list_of_names?(nested["required"]) ? nested["required"] : []
    nested.merge("required" => listed | names)
  end

  # Some model providers refuse a list that does not say what is in it.
  def with_items(schema)
    Array(schema["type"]).include?("array") && !schema.key?("items") ? schema.merge("items" => {}) : schema
  end

  def plain(schema) = schema.select { |keyword, value| allowed?(keyword, value) }

  def allowed?(keyword, value)
    case keyword
    when *LEFT_OUT then false
    when "type" then value.is_a?(Array) ? !value.empty? && value.uniq == value && (value - TYPES).empty? : TYPES.include?(value)
    when "enum" then value.is_a?(Array) && !value.empty?
    when "required" then list_of_names?(value)
    when "multipleOf" then JsonText.number?(value) && value.to_r.positive?
    when "pattern" then value.is_a?(String) && Pattern.valid?(value)
    when "uniqueItems", "readOnly", "writeOnly" then [true, false].include?(value)
    when "examples" then value.is_a?(Array)
    when "patternProperties" then value.is_a?(Hash) && value.keys.all? { |pattern| Pattern.valid?(pattern) }
    when "properties", "dependencies" then value.is_a?(Hash)
    when *LISTS then value.is_a?(Array) && !value.empty?
    when *TEXTS then value.is_a?(String)
    when *NUMBERS then JsonText.number?(value)
    when *SIZES then JsonText.integer?(value) && value.to_r >= 0
    else true
    end
  end

  def list_of_names?(value) = value.is_a?(Array) && value.all?(String) && value.uniq == value
end
