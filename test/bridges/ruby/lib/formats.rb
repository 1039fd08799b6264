# frozen_string_literal: true

require "date"
require "ipaddr"
require "uri"

# The formats that are checked; all others accept any text.
module Formats
  DATE = /(\d{4})-(\d\d)-(\d\d)/
  TIME = /(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|[+-](\d\d):(\d\d))/i
  LABEL = /[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/i

  CHECKS = {
    "date" => ->(text) { (m = text.match(/\A#{DATE}\z/)) && date?(m) },
    "time" => ->(text) { (m = text.match(/\A#{TIME}\z/)) && time?(m.captures) },
    "date-time" => ->(text) { (m = text.match(/\A#{DATE}[Tt]#{TIME}\z/)) && date?(m) && time?(m.captures.drop(3)) },
    "email" => ->(text) { text.match?(/\A[a-z0-9.!\#$%&'*+\/=?^_`{|}~-]+@#{LABEL}(?:\.#{LABEL})*\z/i) && !text.match?(/\A\.|\.\.|\.@/) },
    "hostname" => ->(text) { text.size <= 253 && text.match?(/\A#{LABEL}(?:\.#{LABEL})*\z/) },
    "ipv4" => ->(text) { text.match?(/\A(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|\z)){4}\z/) && !text.end_with?(".") },
    "ipv6" => ->(text) { text.match?(/\A[0-9a-f:.]+\z/i) && IPAddr.new(text).ipv6? },
    "uri" => ->(text) { text.match?(/\A[a-z][a-z0-9+.-]*:/i) && text.ascii_only? && URI.parse(text).absolute? },
    "uri-reference" => ->(text) { text.ascii_only? && URI.parse(text) },
    "uuid" => ->(text) { text.match?(/\A\h{8}-\h{4}-\h{4}-\h{4}-\h{12}\z/) },
    "regex" => ->(text) { Pattern.valid?(text) },
    "json-pointer" => ->(text) { text.match?(%r{\A(?:/(?:[^~/]|~[01])*)*\z}) }
  }.freeze

  module_function

  def valid?(format, text)
    check = CHECKS[format]
    check.nil? || !!check.call(text)
  rescue IPAddr::Error, URI::Error
    false
  end

  def date?(match) = Date.valid_date?(*match.captures.first(3).map(&:to_i))

  def time?(parts)
    hour, minute, second, offset_hour, offset_minute = parts.map(&:to_i)
    hour < 24 && minute < 60 && second < (minute == 59 ? 61 : 60) && offset_hour < 24 && offset_minute < 60
  end
end
