<?php

declare(strict_types=1);

/** The three endpoints. */
final class Bridge
{
    public function __construct(private readonly Site $site, private readonly int $pageSize)
    {
    }

    /** @return string the body of the response */
    public function handle(Request $request): string
    {
        $query = $request->query();
        [$verbs, $endpoint] = match ($request->path()) {
            '/mcp/tools/list' => ['GET, HEAD', fn (): string => $this->list($query['cursor'] ?? '')],
            '/mcp/tools/describe' => ['GET, HEAD', fn (): string => $this->describe($query['name'] ?? null)],
            '/mcp/tools/invoke' => ['POST', fn (): string => $this->invoke($request)],
            default => throw new Failure(404, 'not_found', 'No such path'),
        };
        if (!in_array($request->method, explode(', ', $verbs), true)) {
            throw new Failure(405, 'method_not_allowed', "This path allows $verbs", headers: ['Allow' => $verbs]);
        }

        return $endpoint();
    }

    private function list(mixed $cursor): string
    {
        $tools = $this->discover()->all();
        // The version makes a cursor of another list, another caller's too, a wrong one (list/change-between-pages).
        $version = substr(hash('sha256', Json::encode(array_column($tools, 'name'))), 0, 12);
        $offset = 0;
        if ($cursor !== '') {
            if (!is_string($cursor) || !preg_match('/^([1-9]\d{0,8})-([0-9a-f]{12})$/D', $cursor, $parts) || $parts[2] !== $version) {
                throw new Failure(400, 'invalid_cursor', 'The cursor is malformed, or the tools have changed since it was issued');
            }
            $offset = (int) $parts[1];
        }
        $page = ['tools' => array_slice($tools, $offset, $this->pageSize)];
        if ($offset + $this->pageSize < count($tools)) { // list/page-boundary-exact
            $page['nextCursor'] = $offset + $this->pageSize . "-$version";
        }

        return Json::encode($page);
    }

    private function describe(mixed $name): string
    {
        $tools = $this->discover(); // before the name: permission comes first (errors/precedence)
        if (!is_string($name) || $name === '') {
            throw new Failure(400, 'missing_parameter', 'The parameter name is missing');
        }
        if (!preg_match('//u', $name)) {
            throw new Failure(400, 'missing_parameter', 'The parameter name is not UTF-8');
        }

        return Json::encode(['tool' => $tools->find($name) ?? throw Failure::toolNotFound($name)]);
    }

    /** The discovery permission is not asked for (access/discovery-not-execution); the site validates the arguments. */
    private function invoke(Request $request): string
    {
        self::refuseForgery($request);
        $tools = $this->site->tools();
        $body = $request->body ?? throw new Failure(413, 'request_too_large', 'The body is larger than 2 MiB');
        try {
            $members = Json::members($body);
        } catch (JsonException $e) {
            throw new Failure(400, 'invalid_json', "The body is not a JSON object: {$e->getMessage()}");
        }
        $name = json_decode($members['name'] ?? 'null');
        if (!is_string($name) || $name === '') {
            throw new Failure(400, 'missing_parameter', 'The member name is missing or no text');
        }
        $arguments = $members['arguments'] ?? throw new Failure(400, 'missing_parameter', 'The member arguments is missing');
        if ($arguments[0] !== '{') {
            throw new Failure(400, 'invalid_params', 'The member arguments is not an object');
        }
        $tool = $tools->find($name) ?? throw Failure::toolNotFound($name);

        return '{"result":' . $this->site->call($tool->name, $arguments) . '}';
    }

    private function discover(): Tools
    {
        $tools = $this->site->tools();
        if (!$tools->discoverable) {
            throw new Failure(403, 'access_denied', 'You may not discover tools');
        }

        return $tools;
    }

    /** A browser sends a session cookie wherever a page wants it: such a call must be the site's own (access/csrf). */
    private static function refuseForgery(Request $request): void
    {
        if ($request->header('cookie') === '') {
            return;
        }
        if (!preg_match('#^application/json\s*(;|$)#i', $request->header('content-type'))) {
            throw new Failure(403, 'access_denied', 'With a session, the Content-Type must be application/json');
        }
        $origin = $request->headers['origin'] ?? null;
        if ($origin !== null && preg_replace('#^https?://#i', '', $origin) !== $request->header('host')) {
            throw new Failure(403, 'access_denied', 'Pages of another site may not run tools');
        }
    }
}
