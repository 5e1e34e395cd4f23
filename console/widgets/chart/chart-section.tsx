import type { ChartSection as Definition } from '../../api/page-def.ts';
import { area, bars, line, niceMax, slices } from './chart-shapes.ts';
import { formatted } from '../value/format.ts';
import { Empty, LoadedView } from '../page/page-state.tsx';
import { valueAt } from '../page/path.ts';
import { itemsOf } from '../page/source-items.ts';
import { useSource } from '../page/use-source.ts';

const WIDTH = 720;
const HEIGHT = 220;

/** A drawing for the eye, and the same numbers as a table for everybody. */
export function ChartSection({ section, title }: { section: Definition; title?: string | undefined }) {
  const loaded = useSource(section.source);
  return (
    <LoadedView of={loaded}>
      {data => {
        const rows = itemsOf(data, section.source);
        if (rows.length === 0) return <Empty title="No measurements yet" />;
        return <Chart section={section} rows={rows} name={title ?? 'Chart'} />;
      }}
    </LoadedView>
  );
}

function Chart({ section: { chart, x, series, unit }, rows, name }: { section: Definition; rows: readonly unknown[]; name: string }) {
  const labels = rows.map(row => axisText(valueAt(row, x)));
  const values = series.map(({ value }) => rows.map(row => Number(valueAt(row, value)) || 0));
  const pie = chart === 'pie';
  const legend = pie ? labels.slice(0, 6) : series.map(({ label }) => label);
  const text = (n: number) => `${formatted(n, 'number')}${unit ? ` ${unit}` : ''}`;
  return (
    <figure className="chart">
      {(pie || legend.length > 1) && (
        <ul className="legend" aria-hidden="true">
          {legend.map((label, index) => (
            <li key={label} data-series={index % 6}>
              {label}
            </li>
          ))}
        </ul>
      )}
      {pie ? (
        <svg viewBox="0 0 220 220" className="pie" role="img" aria-label={name}>
          {slices(values[0] ?? [], 110, 110, 104).map((d, index) => (
            <path key={labels[index]} d={d} data-series={index % 6}>
              <title>{`${labels[index]}: ${text(values[0]?.[index] ?? 0)}`}</title>
            </path>
          ))}
        </svg>
      ) : (
        <Plot chart={chart} labels={labels} values={values} text={text} name={name} />
      )}
      <details>
        <summary>Show as a table</summary>
        <div className="table-wrap">
          <table className="table">
            <thead>
              <tr>
                <th scope="col">{x}</th>
                {series.map(({ label }) => (
                  <th key={label} scope="col" className="num">
                    {label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {labels.map((label, row) => (
                <tr key={`${label}-${row}`}>
                  <th scope="row">{label}</th>
                  {series.map(({ label: each }, index) => (
                    <td key={each} className="num" data-label={each}>
                      {text(values[index]?.[row] ?? 0)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

function Plot({
  chart,
  labels,
  values,
  text,
  name,
}: {
  chart: 'line' | 'area' | 'bar';
  labels: string[];
  values: number[][];
  text(n: number): string;
  name: string;
}) {
  const top = niceMax(values);
  const frame = { width: WIDTH, height: HEIGHT, top };
  const marks = [0, 0.5, 1];
  return (
    <div className="plot">
      <div className="plot-y" aria-hidden="true">
        {marks.toReversed().map(mark => (
          <span key={mark}>{text(top * mark)}</span>
        ))}
      </div>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={name}>
        {marks.map(mark => (
          <line key={mark} className="grid" x1="0" x2={WIDTH} y1={HEIGHT - mark * HEIGHT} y2={HEIGHT - mark * HEIGHT} />
        ))}
        {values.map((points, index) =>
          chart === 'bar' ? (
            bars(points, index, values.length, frame).map((bar, at) => (
              <rect key={bar.x} {...bar} rx="2" data-series={index % 6}>
                <title>{`${labels[at]}: ${text(points[at] ?? 0)}`}</title>
              </rect>
            ))
          ) : (
            <g key={`series-${index}`} data-series={index % 6}>
              {chart === 'area' && <path className="fill" d={area(points, frame)} />}
              <path className="stroke" d={line(points, frame)} vectorEffect="non-scaling-stroke" />
            </g>
          ),
        )}
      </svg>
      <div className="plot-x" aria-hidden="true">
        <span>{labels[0]}</span>
        <span>{labels[Math.floor((labels.length - 1) / 2)]}</span>
        <span>{labels.at(-1)}</span>
      </div>
    </div>
  );
}

/** Times are shortened; everything else is shown as it is. */
function axisText(value: unknown): string {
  if (typeof value === 'string' && /^\d{4}-\d{2}-\d{2}T/.test(value)) {
    return new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' }).format(
      new Date(value),
    );
  }
  return formatted(value);
}
