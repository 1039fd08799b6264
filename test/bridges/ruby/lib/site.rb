# frozen_string_literal: true

require_relative "failure"
require_relative "wire"

# The Drupal site, over HTTP. Connections are used again; a request is sent once, whatever happens to it.
class Site
  Answer = Struct.new(:status, :headers, :body)

  CONNECT_TIMEOUT = 1
  MOST_IDLE = 8
  LONGEST_IDLE = 4
  MOST_BYTES = 32 * 1024 * 1024

  def initialize(uri, timeout)
    @host = uri.host.delete_prefix("[").delete_suffix("]")
    @port = uri.port
    @authority = uri.port == uri.default_port ? uri.host : "#{uri.host}:#{uri.port}"
    @base = uri.path
    @timeout = timeout
    @idle = []
    @lock = Mutex.new
  end

  def get(path, headers, watched: nil) = exchange("GET", path, headers, nil, watched)

  def post(path, headers, body, watched: nil) = exchange("POST", path, headers, body, watched)

  private

  def exchange(method, path, headers, body, watched)
    deadline = Wire.now + @timeout
    wire = idle || connect(deadline)
    wire.deadline = deadline
    wire.watched = watched
    begin
      send_all(wire.io, message(method, path, headers, body), deadline)
      answer, reusable = read(wire)
    ensure
      reusable && wire.quiet? ? keep(wire) : wire.close
    end
    answer
  rescue Wire::TimedOut
    raise Failure.new(:upstream_timeout, "The site did not respond in time.")
  rescue Wire::Malformed, Wire::TooLarge, EOFError, SystemCallError, IOError
    raise Failure.new(:upstream_error, "The site's response was not usable.")
  end

  def message(method, path, headers, body)
    lines = ["#{method} #{@base}#{path} HTTP/1.1", "Host: #{@authority}", "Accept: application/json"]
    headers.each { |name, value| lines << "#{name}: #{value}" }
    lines.push("Content-Type: application/json", "Content-Length: #{body.bytesize}") if body
    (lines.map(&:b).join("\r\n") << "\r\n\r\n" << body.to_s.b)
  end

  def send_all(io, bytes, deadline)
    until bytes.empty?
      case written = io.write_nonblock(bytes, exception: false)
      when :wait_writable
        left = deadline - Wire.now
        raise Wire::TimedOut unless left.positive? && io.wait_writable(left)
      else bytes = bytes.byteslice(written..)
      end
    end
  end

  def read(wire)
    loop do
      version, status = (wire.line || raise(EOFError)).match(%r{\AHTTP/(1\.[01]) (\d{3})(?: |\z)}n)&.captures
      raise Wire::Malformed, "that is not HTTP" unless version

      headers = wire.headers
      next if status.start_with?("1")

      bodiless = %w[204 304].include?(status)
      body = bodiless ? "" : wire.body(headers, limit: MOST_BYTES, until_end: true)
      framed = bodiless || headers.key?("content-length") || headers.key?("transfer-encoding")
      closes = headers.fetch("connection", []).any? { |value| value.downcase.include?("close") }
      return Answer.new(status.to_i, headers, body), framed && !closes && version == "1.1"
    end
  end

  # A connection on which something came unasked, or which the site closed, is not used again.
  def idle
    loop do
      wire, since = @lock.synchronize { @idle.pop }
      return nil unless wire
      return wire if Wire.now - since < LONGEST_IDLE && wire.quiet?

      wire.close
    end
  end

  def keep(wire)
    wire.watched = nil
    surplus = @lock.synchronize do
      @idle.push([wire, Wire.now])
      @idle.shift if @idle.size > MOST_IDLE
    end
    surplus&.first&.close
  end

  def connect(deadline)
    limit = [CONNECT_TIMEOUT, deadline - Wire.now].min
    socket = Socket.tcp(@host, @port, connect_timeout: limit)
    socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    Wire.new(socket)
  rescue Errno::ETIMEDOUT
    raise Failure.new(:upstream_timeout, "The site did not respond in time.")
  rescue SystemCallError, SocketError
    raise Failure.new(:upstream_unavailable, "The site cannot be reached.")
  end
end
