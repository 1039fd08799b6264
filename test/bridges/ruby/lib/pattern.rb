# frozen_string_literal: true

# Regular expressions of JSON Schema, which are those of ECMA-262, as Ruby writes them.
module Pattern
  PART = /\\.|\[(?:\\.|[^\]\\])*\]|\^|\$|[^\\\[^$]+|./m
  SPACE = '\s\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'

  module_function

  def valid?(pattern)
    to_regexp(pattern)
    true
  rescue RegexpError
    false
  end

  # ^ and $ stand for the ends of the text, not of a line, and in a class [ and && are characters.
  def to_regexp(pattern)
    ruby = pattern.gsub(PART) do |part|
      case part
      when "^" then '\A'
      when "$" then '\z'
      when '\s' then "[#{SPACE}]"
      when '\S' then "[^#{SPACE}]"
      when '\d' then "[0-9]"
      when '\D' then "[^0-9]"
      when '\/', '\-' then Regexp.escape(part[1])
      when /\A\[/ then "#{part[0, 1]}#{part[1..].gsub(/(?<!\\)\[/, '\[').gsub("&&") { '&\\&' }.gsub('\s', SPACE)}"
      else part
      end
    end
    Regexp.new(ruby)
  end
end
