# frozen_string_literal: true

require "json"
require "time"
require "uri"

require_relative "wire"

# A request of a caller.
class Request
  MOST_BODY = 4 * 1024 * 1024

  attr_reader :method, :path, :query, :headers, :io
  attr_accessor :body

  # Reads a request up to its body, or gives nil where the caller closed the connection.
  def self.read(wire)
    line = wire.line(16 * 1024)
    line = wire.line(16 * 1024) if line == "" # an empty line before a request is ignored
    return nil if line.nil?

    method, target, version = line.match(%r{\A(#{Wire::TOKEN}) (\S+) HTTP/1\.([01])\z}n)&.captures
    raise Wire::Malformed, "the first line of the request is malformed" unless method

    headers = wire.headers
    raise Wire::Malformed, "a request has one Host" unless version == "0" || headers["host"]&.one?

    new(method, target, headers, version, wire)
  end

  def initialize(method, target, headers, version, wire)
    @method = method
    @path, _, @query = target.sub(%r{\Ahttps?://[^/?]*}in, "").partition("?")
    @headers = headers
    @version = version
    @wire = wire
  end

  def io = @wire.io

  def read_body
    io.write("HTTP/1.1 100 Continue\r\n\r\n") if header("expect")&.downcase == "100-continue"
    @body = @wire.body(headers, limit: MOST_BODY)
  end

  # The values of a header, as one text, or nil.
  def header(name) = headers[name]&.join(", ")

  def keep_alive?
    options = header("connection").to_s.downcase.split(/\s*,\s*/)
    @version == "1" ? !options.include?("close") : options.include?("keep-alive")
  end

  def media_type = header("content-type").to_s[/\A[^;]*/].strip.downcase

  # The parameter of the query by its name, or nil.
  def parameter(name)
    pairs = query.split("&").map { |pair| pair.partition("=").values_at(0, 2).map { |text| decoded(text) } }
    values = pairs.select { |key, _| key == name }.map(&:last)
    raise Failure.new(:invalid_request, "The parameter #{name} is there more than once.") if values.size > 1

    values.first
  end

  # Whether a page of another site sends this.
  def foreign_origin?(hosts)
    origin = header("origin")
    !origin.nil? && !hosts.include?(origin[%r{\Ahttps?://([^/]+)\z}i, 1]&.downcase)
  end

  private

  def decoded(text)
    plain = URI.decode_www_form_component(text.b, Encoding::UTF_8)
    raise ArgumentError unless plain.valid_encoding?

    plain
  rescue ArgumentError
    raise Failure.new(:invalid_request, "The query is not percent-encoded UTF-8.")
  end
end

# What a caller gets.
Response = Struct.new(:status, :headers, :body) do
  def self.json(status, body, headers = {})
    new(status, { "Content-Type" => "application/json", **headers }, body)
  end

  def to_bytes(head:, close:)
    lines = ["HTTP/1.1 #{status} #{Response::REASONS[status]}", "Date: #{Time.now.httpdate}", "X-Content-Type-Options: nosniff"]
    headers.each { |name, value| Array(value).each { |one| lines << "#{name}: #{one}" } }
    lines << "Content-Length: #{body.bytesize}" unless [204, 304].include?(status)
    lines << "Connection: close" if close
    bytes = lines.map(&:b).join("\r\n") << "\r\n\r\n"
    head || status == 304 ? bytes : bytes << body.b
  end
end
Response::REASONS = {
  200 => "OK", 202 => "Accepted", 204 => "No Content", 304 => "Not Modified", 400 => "Bad Request", 401 => "Unauthorized",
  403 => "Forbidden", 404 => "Not Found", 405 => "Method Not Allowed", 406 => "Not Acceptable", 413 => "Content Too Large",
  415 => "Unsupported Media Type", 500 => "Internal Server Error", 502 => "Bad Gateway", 503 => "Service Unavailable",
  504 => "Gateway Timeout"
}.freeze
