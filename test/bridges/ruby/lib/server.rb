# frozen_string_literal: true

require "socket"

require_relative "failure"
require_relative "http"
require_relative "wire"

# An HTTP/1.1 server with a thread for each connection.
class Server
  LONGEST_IDLE = 75
  LONGEST_REQUEST = 30
  LONGEST_END = 4

  def initialize(host, port, app)
    @app = app
    @listener = TCPServer.new(host, port)
    @stopped, @stopper = IO.pipe
    @busy = 0
    @lock = Mutex.new
  end

  # Serves until stop, and then until the requests that have begun have their responses.
  def run
    warn "listening on #{@listener.local_address.inspect_sockaddr}"
    until IO.select([@listener, @stopped]).first.include?(@stopped)
      socket = @listener.accept_nonblock(exception: false)
      Thread.new(socket) { |connection| serve(connection) } if socket.is_a?(TCPSocket)
    end
    @listener.close
    ended = Wire.now + LONGEST_END
    sleep 0.02 while @busy.positive? && Wire.now < ended
  end

  # May be called by the handler of a signal.
  def stop = @stopper.write_nonblock(".", exception: false)

  private

  def serve(socket)
    socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    wire = Wire.new(socket)
    loop { break unless answer_one(wire) }
  rescue Wire::TimedOut, Wire::Cancelled, EOFError, SystemCallError, IOError
    nil # there is nobody to respond to
  ensure
    socket.close
  end

  # Whether the connection serves further requests.
  def answer_one(wire)
    wire.deadline = Wire.now + LONGEST_IDLE
    request = Request.read(wire) or return false
    wire.deadline = Wire.now + LONGEST_REQUEST
    request.read_body
    busy do
      response = @app.call(request)
      close = !request.keep_alive? || stopping?
      wire.io.write(response.to_bytes(head: request.method == "HEAD", close:))
      !close
    end
  rescue Wire::Malformed => e
    refuse(wire, Failure.new(:invalid_request, "The request is malformed: #{e.message}."))
  rescue Wire::TooLarge => e
    refuse(wire, Failure.new(:request_too_large, "The request is too large: #{e.message}."))
  end

  # Refuses what cannot be read to its end. The rest is read for a moment, so that the response is not lost.
  def refuse(wire, failure)
    response = Response.json(failure.status, failure.to_json, { "Cache-Control" => "no-store" })
    wire.io.write(response.to_bytes(head: false, close: true))
    wire.io.close_write
    ended = Wire.now + 1
    while (left = ended - Wire.now).positive? && wire.io.wait_readable(left)
      break if wire.io.read_nonblock(64 * 1024, exception: false).nil?
    end
    false
  end

  def busy
    @lock.synchronize { @busy += 1 }
    yield
  ensure
    @lock.synchronize { @busy -= 1 }
  end

  def stopping? = @listener.closed?
end
