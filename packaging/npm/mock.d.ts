/** How a mock Drupal is started. */
export interface Options {
  /** A built-in site, or the path of a site file. Default: `default`. */
  site?: string;
  /** Further arguments of `bridgecheck mock`. */
  args?: string[];
}

/** A fault of the site; `GET fault-kinds` of the control plane lists the kinds. */
export interface Fault {
  kind: string;
  route?: string;
  /** A pattern of method ids, such as `content.*`. */
  method?: string;
  user?: string;
  count?: number;
  status?: number;
  /** Such as `1.5s`. */
  delay?: string;
  probability?: number;
  seed?: number;
  [more: string]: unknown;
}

/** A JSON-RPC call in a request. */
export interface Call {
  method: string;
  ran: boolean;
  [more: string]: unknown;
}

/** A request that reached the site. */
export interface Entry {
  seq: number;
  start: string;
  end: string;
  /** The account's name; empty where the caller is anonymous or refused. */
  user: string;
  scheme: string;
  http_method: string;
  host: string;
  path: string;
  query: string;
  route: string;
  /** Credentials are hashes. */
  header: Record<string, string[]>;
  /** As text, at most 64 KiB. */
  body: string;
  calls: Call[] | null;
  status: number;
  [more: string]: unknown;
}

/** Which requests `journal` gives; all where nothing is named. */
export interface Filter {
  after?: string;
  user?: string;
  method?: string;
  route?: string;
  status?: string;
  ran?: string;
  limit?: string;
}

/** A mock Drupal that runs. */
export interface Mock {
  /** What a bridge gets as the URL of its site. */
  readonly url: string;
  /** URL of the control plane. */
  readonly control: string;
  /** Makes the site misbehave until the function is called, or reset. */
  arm(fault: Fault): Promise<() => Promise<void>>;
  /** The requests that reached the site, oldest first. */
  journal(filter?: Filter): Promise<Entry[]>;
  /** Changes the site, as `PATCH site` of the control plane does. */
  patch(change: Record<string, unknown>): Promise<void>;
  /** Puts the site back as it was when the mock started, and empties journal and faults. */
  reset(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a mock Drupal on a free port. */
export function start(options?: Options): Promise<Mock>;
