import { parseAst } from 'vite';

/** One small change of a source text. */
export interface Mutant {
  readonly kind: string;
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly before: string;
  readonly after: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

const SWAPPED: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
};
/** What a log line says is asserted where it matters; that one is missing breaks nothing. */
const SAYS = /^(void )?(this\.)?(#\w+\.|ctx\.|parts\.|options\.|this\.)*#?(log|telemetry|console)\b/;

/**
 * Every small change that could be a slip: conditions turned around, bounds moved by one, statements, refusals and waits left out,
 * constants changed.
 */
export function mutantsOf(source: string): Mutant[] {
  const mutants: Mutant[] = [];
  const text = (node: Node) => source.slice(node.start, node.end);
  const add = (kind: string, node: Pick<Node, 'start' | 'end'>, after: string) =>
    mutants.push({
      kind,
      line: source.slice(0, node.start).split('\n').length,
      start: node.start,
      end: node.end,
      before: source.slice(node.start, node.end),
      after,
    });
  const operatorOf = (node: Node) => {
    const [left, right] = [node['left'] as Node, node['right'] as Node];
    const at = left.end + source.slice(left.end, right.start).indexOf(String(node['operator']));
    return { start: at, end: at + String(node['operator']).length };
  };

  const visit = (node: Node): void => {
    switch (node.type) {
      case 'IfStatement':
      case 'ConditionalExpression': {
        const test = node['test'] as Node;
        add('negated condition', test, `!(${text(test)})`);
        break;
      }
      case 'LogicalExpression':
      case 'BinaryExpression': {
        const after = SWAPPED[String(node['operator'])];
        if (after !== undefined) add('other operator', operatorOf(node), after);
        break;
      }
      case 'UnaryExpression':
        if (node['operator'] === '!') add('dropped not', node, text(node['argument'] as Node));
        break;
      case 'AwaitExpression':
        add('removed await', node, text(node['argument'] as Node));
        break;
      case 'ThrowStatement':
        add('removed refusal', node, ';');
        break;
      case 'ReturnStatement':
        if (
          node['argument'] &&
          !['ArrayExpression', 'ObjectExpression'].includes((node['argument'] as Node).type) &&
          text(node['argument'] as Node) !== 'undefined'
        )
          add('other answer', node['argument'] as Node, `undefined as never`);
        break;
      case 'ExpressionStatement':
        if (!SAYS.test(text(node))) add('dropped statement', node, ';');
        break;
      case 'Literal':
        if (typeof node['value'] === 'number') add('other number', node, String(node['value'] + 1));
        if (typeof node['value'] === 'boolean') add('other truth', node, String(!node['value']));
        break;
      default:
    }
    for (const [member, value] of Object.entries(node)) {
      // A type is no behaviour.
      if (/^(typeAnnotation|typeArguments|typeParameters|returnType|superTypeArguments|implements|decorators)$/.test(member)) continue;
      for (const child of Array.isArray(value) ? value : [value])
        if (isNode(child) && !/^TS(Type|Interface|Enum|Literal)/.test(child.type)) visit(child);
    }
  };
  const program = parseAst(source, { lang: 'ts' }) as unknown as { body: Node[] };
  for (const statement of program.body) if (!/^(Import|ExportAll)/.test(statement.type)) visit(statement);
  return mutants.sort((left, right) => left.start - right.start);
}

export const applied = (source: string, { start, end, after }: Mutant): string => source.slice(0, start) + after + source.slice(end);

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string' && typeof (value as Node).start === 'number';
