/** Matches a path against declared templates: literal segments win over `{name}`, and those over `{*rest}`. */
export class RouteTable<T> {
  readonly #root: Node<T> = newNode();
  /** Templates without parameters, found in one step: a literal wins everywhere. */
  readonly #literals = new Map<string, Match<T>>();

  /** Adds a template such as `/v1/org/{id}`. A second entry for the same method and shape is refused. */
  add(method: string, template: string, value: T): void {
    let node = this.#root;
    const names: string[] = [];
    for (const segment of template.split('/').slice(1)) {
      const [, star, name] = /^\{(\*?)([A-Za-z_]+)\}$/.exec(segment) ?? [];
      if (name === undefined) {
        let next = node.literals.get(segment);
        if (!next) node.literals.set(segment, (next = newNode()));
        node = next;
      } else {
        names.push(name);
        if (star) node = node.rest ??= newNode();
        else node = node.parameter ??= newNode();
      }
    }
    if (node.values.has(method)) throw new Error(`two routes answer ${method} ${template}`);
    node.values.set(method, { value, names });
    if (names.length === 0) this.#literals.set(`${method} ${template}`, { value, params: {} });
  }

  /** The match, or the methods the path would take (and what would take it as a remainder), or nothing. Malformed percent-encoding is `'malformed'`. */
  find(method: string, path: string): Match<T> | { methods: string[]; around?: Match<T> } | 'malformed' | undefined {
    const literal = this.#literals.get(`${method} ${path}`);
    if (literal) return literal;
    let segments: string[];
    try {
      segments = path.split('/').slice(1).map(decodeURIComponent);
    } catch {
      return 'malformed';
    }
    const methods = new Set<string>();
    let around: Match<T> | undefined;
    const walk = (node: Node<T>, index: number, captured: string[]): Match<T> | undefined => {
      if (index === segments.length) return take(node, captured);
      const segment = segments[index] as string;
      const literal = node.literals.get(segment);
      const found = (literal && walk(literal, index + 1, captured)) || (node.parameter && segment !== '' && walk(node.parameter, index + 1, [...captured, segment]));
      if (found) return found;
      if (!node.rest) return undefined;
      const remainder = take(node.rest, [...captured, segments.slice(index).join('/')], methods.size === 0 ? methods : new Set());
      if (methods.size === 0 || !remainder) return remainder;
      // A path that is declared whole is not the remainder of another, whatever the method (F-28).
      around ??= remainder;
      return undefined;
    };
    const take = (node: Node<T>, captured: string[], told = methods): Match<T> | undefined => {
      const entry = node.values.get(method) ?? node.values.get('ANY') ?? (method === 'HEAD' ? node.values.get('GET') : undefined);
      if (!entry) {
        for (const known of node.values.keys()) told.add(known);
        return undefined;
      }
      return { value: entry.value, params: Object.fromEntries(entry.names.map((name, index) => [name, captured[index] as string])) };
    };
    return walk(this.#root, 0, []) ?? (methods.size > 0 ? { methods: [...methods], ...(around ? { around } : {}) } : undefined);
  }
}

export interface Match<T> {
  readonly value: T;
  readonly params: Readonly<Record<string, string>>;
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  parameter: Node<T> | undefined;
  rest: Node<T> | undefined;
  readonly values: Map<string, { value: T; names: string[] }>;
}
const newNode = <T>(): Node<T> => ({ literals: new Map(), parameter: undefined, rest: undefined, values: new Map() });
