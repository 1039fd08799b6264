# frozen_string_literal: true

require "socket"

# Reads HTTP/1.1 from a socket, with one deadline for all of a message.
class Wire
  TimedOut = Class.new(StandardError)
  Cancelled = Class.new(StandardError)
  Malformed = Class.new(StandardError)
  TooLarge = Class.new(StandardError)

  MOST_HEADERS = 64 * 1024
  TOKEN = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/

  attr_reader :io
  attr_writer :deadline
  attr_accessor :watched # when the other end of this socket closes, reading is given up

  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def initialize(io)
    @io = io
    @buffer = String.new(encoding: Encoding::BINARY)
  end

  # The next line without its end, or nil where the connection was closed before it began.
  def line(limit = MOST_HEADERS)
    until (position = @buffer.index("\n"))
      raise TooLarge, "a line is too long" if @buffer.bytesize > limit
      next if fill
      return nil if @buffer.empty?

      raise EOFError
    end
    raise TooLarge, "a line is too long" if position > limit

    @buffer.slice!(0, position + 1).chomp("\n").chomp("\r")
  end

  # The fields of a header, by their names in lower case, each with all its values.
  def headers
    fields = Hash.new { |hash, name| hash[name] = [] }
    left = MOST_HEADERS
    until (text = line(left) || raise(EOFError)).empty?
      left -= text.bytesize
      raise TooLarge, "the header is too long" if left.negative?

      match = text.match(/\A(#{TOKEN}):[ \t]*(.*?)[ \t]*\z/mn)
      raise Malformed, "a line of the header is malformed" if match.nil? || match[2].match?(/[\x00-\x08\x0a-\x1f\x7f]/n)

      fields[match[1].downcase] << match[2]
    end
    fields.default_proc = nil
    fields
  end

  # The body that the header announces. Without a length, a request has none and a response lasts until its end.
  def body(headers, limit:, until_end: false)
    codings = headers.fetch("transfer-encoding", [])
    lengths = headers.fetch("content-length", []).flat_map { |value| value.split(/[ \t]*,[ \t]*/, -1) }.uniq
    return chunked(codings, lengths, limit) unless codings.empty?
    return until_end ? rest(limit) : "" if lengths.empty?
    raise Malformed, "Content-Length is malformed" unless lengths.one? && lengths.first.match?(/\A\d{1,18}\z/)

    exactly(lengths.first.to_i, limit)
  end

  # Whether nothing waits to be read, neither bytes nor the end of the connection.
  def quiet? = @buffer.empty? && @io.wait_readable(0).nil?

  def close = @io.close

  private

  def chunked(codings, lengths, limit)
    raise Malformed, "Transfer-Encoding is not understood" unless codings.map(&:downcase) == ["chunked"]
    raise Malformed, "a message has two lengths" unless lengths.empty?

    whole = String.new(encoding: Encoding::BINARY)
    loop do
      size = (line(1024) || raise(EOFError))[/\A(\h{1,8})[ \t]*(?:;.*)?\z/n, 1] or raise Malformed, "a chunk is malformed"
      break if size.hex.zero?

      whole << exactly(size.hex, limit - whole.bytesize)
      raise Malformed, "a chunk is malformed" unless line(2) == ""
    end
    headers # trailers
    whole
  end

  def exactly(size, limit)
    raise TooLarge, "the body is too large" if size > limit

    until @buffer.bytesize >= size
      fill or raise EOFError
    end
    @buffer.slice!(0, size)
  end

  def rest(limit)
    nil while fill && (@buffer.bytesize <= limit || raise(TooLarge, "the body is too large"))
    @buffer.slice!(0, @buffer.bytesize)
  end

  # Reads what there is, or false at the end.
  def fill
    loop do
      case chunk = @io.read_nonblock(64 * 1024, exception: false)
      when :wait_readable then wait
      when nil then return false
      else
        @buffer << chunk
        return true
      end
    end
  end

  def wait
    left = @deadline - Wire.now
    ready, = IO.select([@io, watched].compact, nil, nil, left) if left.positive?
    raise TimedOut unless ready
    return unless watched && ready.include?(watched)
    raise Cancelled if ["", nil].include?(watched.recv_nonblock(1, Socket::MSG_PEEK, exception: false))

    self.watched = nil # the next request has come already
  rescue Errno::ECONNRESET
    raise if ready.nil?

    raise Cancelled
  end
end
