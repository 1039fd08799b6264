# frozen_string_literal: true

require "json"
require "strscan"

# JSON by RFC 8259, strictly, and with every number as it was written.
module JsonText
  Invalid = Class.new(StandardError)

  # A number with a fraction or an exponent. It keeps its text, so that writing it again changes nothing.
  class Decimal
    attr_reader :text

    def self.try_convert(text) = new(text)

    def initialize(text)
      @text = text.dup.freeze
    end

    # Exponents are bounded: 1e999999999 would need all memory.
    def to_r
      exponent = text[/[eE]\+?(-?\d+)/, 1].to_i
      return Rational(text) if exponent.abs <= 1000

      exponent.negative? || text.match?(/\A-?[0.]+[eE]/) ? Rational(0) : Rational("#{text[/\A-/]}1e1000")
    end

    def integer? = to_r.denominator == 1

    def to_json(*) = text
  end

  # Text that is JSON already.
  Raw = Struct.new(:text) do
    def to_json(*) = text
  end

  # An object that refuses a second member of the same name.
  class UniqueMembers < Hash
    def []=(name, value)
      raise Invalid, "the member #{name} occurs twice" if key?(name)

      super
    end
  end

  # What Ruby's parser takes and RFC 8259 does not: comments, unknown escapes, halves of surrogate pairs.
  ESCAPE = /\\(?>["\\\/bfnrt]|u(?>[dD][89abAB]\h\h\\u[dD][c-fC-F]\h\h|(?![dD][89a-fA-F])\h{4}))/
  STRING = /"(?>[^"\\\x00-\x1f]+|#{ESCAPE})*+"/
  BETWEEN_BRACKETS = /[^"\[\]{}]*+(?>#{STRING}[^"\[\]{}]*+)*+/
  TOKENS = /[^"\/]*+(?>#{STRING}[^"\/]*+)*+/

  module_function

  # The value of a text. Objects refuse duplicate members.
  def parse(text, depth: 512)
    text = utf8(text)
    scanner = StringScanner.new(text)
    scanner.skip(TOKENS)
    raise Invalid, "it is not JSON" unless scanner.eos?

    JSON.parse(text, max_nesting: depth, object_class: UniqueMembers, decimal_class: Decimal)
  rescue JSON::ParserError
    raise Invalid, "it is not JSON, or nested too deeply"
  end

  # The members of the object in the text, by name, each as the text that stands there.
  def members(text)
    scanner = StringScanner.new(utf8(text))
    found = UniqueMembers.new
    each_of(scanner, "{", "}") do
      name = scanner.scan(STRING) or raise Invalid, "a name is missing"
      scanner.skip(/[ \t\r\n]*:[ \t\r\n]*/) or raise Invalid, "a colon is missing"
      found[JSON.parse(name)] = value(scanner)
    end
    found
  end

  # The elements of the list in the text, each as the text that stands there.
  def elements(text)
    scanner = StringScanner.new(utf8(text))
    found = []
    each_of(scanner, "[", "]") { found << value(scanner) }
    found
  end

  # Whether two values are the same for JSON: 1 is 1.0, and the order of members does not count.
  def same?(one, other) = canonical(one) == canonical(other)

  def canonical(value)
    case value
    when Integer then [:number, Rational(value)]
    when Decimal then [:number, value.to_r]
    when Array then value.map { |element| canonical(element) }
    when Hash then value.transform_values { |member| canonical(member) }
    else value
    end
  end

  def number?(value) = value.is_a?(Integer) || value.is_a?(Decimal)

  def integer?(value) = value.is_a?(Integer) || (value.is_a?(Decimal) && value.integer?)

  def utf8(text)
    text = text.dup.force_encoding(Encoding::UTF_8)
    raise Invalid, "it is not UTF-8" unless text.valid_encoding?

    text
  end

  def each_of(scanner, opening, closing)
    scanner.skip(/[ \t\r\n]*/)
    raise Invalid, "#{opening} is missing" unless scanner.getch == opening

    scanner.skip(/[ \t\r\n]*/)
    unless scanner.skip(closing)
      loop do
        yield
        break unless scanner.skip(/[ \t\r\n]*,[ \t\r\n]*/)
      end
      scanner.skip(/[ \t\r\n]*/)
      scanner.skip(closing) or raise Invalid, "#{closing} is missing"
    end
    raise Invalid, "something follows the value" unless scanner.skip(/[ \t\r\n]*\z/)
  end

  # Skips one value without recursion: whether it is right inside is for parse to say.
  def value(scanner)
    start = scanner.pos
    unless scanner.skip(STRING) || scanner.skip(/[^\s"\[\]{},:]+/)
      depth = 0
      loop do
        if scanner.skip(/[\[{]/) then depth += 1
        elsif scanner.skip(/[\]}]/) then depth -= 1
        else raise Invalid, "a value is missing"
        end
        break if depth <= 0

        scanner.skip(BETWEEN_BRACKETS)
      end
      raise Invalid, "a bracket closes that was never opened" if depth.negative?
    end
    scanner.string.byteslice(start, scanner.pos - start)
  end
end
