# frozen_string_literal: true

require "digest"

# Who calls: the credentials of a request, and the language that it asks for.
class Caller
  FORWARDED = { "authorization" => "Authorization", "cookie" => "Cookie", "accept-language" => "Accept-Language",
                "x-csrf-token" => "X-CSRF-Token" }.freeze

  attr_reader :headers

  def initialize(headers)
    @headers = FORWARDED.filter_map { |name, sent| [sent, headers[name].join(name == "cookie" ? "; " : ", ")] if headers.key?(name) }.to_h
  end

  # The same for two requests exactly if the site sees the same credentials.
  def identity = digest("Authorization", "Cookie")

  # What a cached list depends on.
  def view = digest("Authorization", "Cookie", "Accept-Language")

  private

  def digest(*names) = Digest::SHA256.hexdigest(names.map { |name| headers[name].inspect }.join("\n"))
end
