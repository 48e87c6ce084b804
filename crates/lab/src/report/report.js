// Draws the charts from the data in the page. Everything they show is also in the tables, so nothing depends on this.
(function () {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const cells = data.cells;
  document.documentElement.classList.add('drawn');

  const variable = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  // A chart that is saved has it inside double quotation marks.
  const font = () => variable('sans').replace(/"/g, "'");
  const dashes = ['solid', [7, 4], [2, 3], [9, 3, 2, 3]];
  const three = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
  const number = value => (value == null ? '–' : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : three.format(value));
  const short = value => (Math.abs(value) >= 1e6 ? three.format(value / 1e6) + ' M' : Math.abs(value) >= 1e5 ? three.format(value / 1e3) + ' k' : number(value));
  const percent = share => Math.round(share * 100) + ' %';
  const escaped = text => String(text).replace(/[&<>"]/g, c => '&#' + c.charCodeAt(0) + ';');

  let theme;
  function readTheme() {
    theme = { ink: variable('ink'), muted: variable('muted'), rule: variable('rule'), paper: variable('paper') };
    theme.series = index => variable('series-' + (index % 7));
    theme.cause = name => variable('cause-' + name);
  }

  const text = () => ({ color: theme.muted, fontSize: 12, fontFamily: font() });
  function axis(extra) {
    return Object.assign({
      axisLabel: Object.assign(text(), { hideOverlap: true }, extra && extra.label), axisLine: { show: false }, axisTick: { show: false },
      splitLine: { lineStyle: { color: theme.rule } }, minorSplitLine: { show: false },
      nameTextStyle: text(),
    }, extra);
  }
  function tooltip(extra) {
    return Object.assign({
      confine: true, backgroundColor: theme.paper, borderColor: theme.rule, textStyle: { color: theme.ink, fontSize: 12, fontFamily: font() },
    }, extra);
  }
  const base = option => Object.assign({ animation: false, backgroundColor: 'transparent' }, option);
  const names = cells.map(cell => cell.name);
  const narrow = element => element.clientWidth < 480;

  // Names of cells beside their bars; on a telephone above them, in one line. `lines` fit into the pitch of the bars.
  function nameLabel(element, half, lines) {
    const label = { color: theme.ink, fontWeight: 600, fontSize: 13, lineHeight: 16, fontFamily: font() };
    return narrow(element)
      ? Object.assign(label, { inside: true, margin: 0, padding: [0, 0, half + 3, 0], verticalAlign: 'bottom', width: element.clientWidth - 90, overflow: 'truncate' })
      : Object.assign(label, { width: 190, height: 16 * lines, overflow: 'break', lineOverflow: 'truncate', interval: 0, hideOverlap: false });
  }
  const leftOf = element => (narrow(element) ? 8 : 198);

  function throughput(element) {
    const label = nameLabel(element, 13, 3);
    const series = [{
      type: 'bar', barWidth: 26, data: cells.map((cell, index) => ({ value: cell.mean, itemStyle: { color: theme.series(index), opacity: 0.82 } })),
    }];
    cells.forEach(cell => {
      if (cell.interval) {
        series.push({
          type: 'line', silent: true, symbol: 'rect', symbolSize: [2, 16], lineStyle: { color: theme.ink, width: 2, type: 'solid' },
          itemStyle: { color: theme.ink }, data: cell.interval.map(value => [value, cell.name]), z: 4,
        });
      }
    });
    const spread = cells.flatMap(cell => cell.values.map((value, trial) => ({
      value: [value, cell.name], trial: trial + 1, symbolOffset: [0, (trial - (cell.values.length - 1) / 2) * Math.min(6, 24 / cell.values.length)],
    })));
    series.push({ type: 'scatter', data: spread, symbolSize: 8, itemStyle: { color: theme.paper, borderColor: theme.ink, borderWidth: 1.5 }, z: 6 });
    return base({
      grid: { left: leftOf(element), right: 64, top: 6, bottom: 28 },
      tooltip: tooltip({ formatter: item => item.seriesType === 'scatter'
        ? escaped(item.value[1]) + ', trial ' + item.data.trial + '<br><b>' + number(item.value[0]) + '</b>'
        : escaped(item.name) + '<br>mean <b>' + number(item.value) + '</b>' }),
      xAxis: axis({ type: 'value', min: 0, splitNumber: narrow(element) ? 2 : 5, label: { formatter: short } }),
      yAxis: [
        axis({ type: 'category', data: names, inverse: true, label, z: 5, splitLine: { show: false } }),
        axis({ type: 'category', data: cells.map(cell => number(cell.mean) + (cell.has_few_events ? '†' : '') + (cell.is_not_steady ? '‡' : '')), inverse: true, position: 'right', label: { color: theme.ink, fontWeight: 600, fontSize: 13, fontFamily: font() }, splitLine: { show: false } }),
      ],
      series,
    });
  }

  const nines = [0.30103, 1, 2, 3, 4];
  const share = value => {
    const percentage = 100 * (1 - Math.pow(10, -value));
    return value < 0.31 ? '50 %' : percentage.toFixed(Math.max(0, Math.round(value) - 2)) + ' %';
  };
  function latency() {
    const end = Math.max(2, ...cells.flatMap(cell => cell.curve.map(point => point[0])));
    return base({
      grid: { left: 56, right: 24, top: 14, bottom: 42 },
      tooltip: tooltip({
        trigger: 'axis', formatter: items => share(items[0].axisValue) + ' of transactions within<br>' +
          items.map(item => item.marker + escaped(item.seriesName) + ' <b>' + number(item.value[1]) + '</b> ms').join('<br>'),
      }),
      xAxis: axis({ type: 'value', min: 0.30103, max: end, axisTick: { show: false, customValues: nines }, label: { customValues: nines, formatter: share },
        name: 'share of transactions that were at most this slow', nameLocation: 'middle', nameGap: 26 }),
      yAxis: axis({ type: 'log', label: { formatter: short } }),
      series: cells.map((cell, index) => ({
        name: cell.name, type: 'line', showSymbol: false, data: cell.curve, color: theme.series(index), lineStyle: { width: 2.5, type: dashes[index % 4] },
      })),
    });
  }

  function bottlenecks(element) {
    const known = ['read', 'commit', 'storage', 'locks', 'file-locks', 'work', 'queue', 'other'];
    const causes = known.filter(cause => ['read', 'commit', 'locks', 'other'].includes(cause) || cells.some(cell => cause in (cell.shares || {})));
    cells.forEach(cell => Object.keys(cell.shares || {}).forEach(cause => causes.includes(cause) || causes.push(cause)));
    const label = nameLabel(element, 12, 3);
    const shareOf = (cell, cause) => (cell.shares || {})[cause] || 0;
    // Estimates may overlap. The bar then stays within the frame, and its labels are the estimates.
    const total = cell => Math.max(1, causes.reduce((sum, cause) => sum + shareOf(cell, cause), 0));
    const series = causes.map(cause => ({
      name: cause, type: 'bar', stack: 'all', barWidth: 24, itemStyle: { color: theme.cause(cause) || theme.cause('other'), borderColor: theme.paper, borderWidth: 1 },
      label: { show: true, color: '#fff', fontSize: 12, fontFamily: font(), formatter: item => (item.value >= (narrow(element) ? 0.16 : 0.07) ? percent(item.data.share) : '') },
      data: cells.map(cell => ({ value: shareOf(cell, cause) / total(cell), share: shareOf(cell, cause) })),
    }));
    series.push({
      name: 'cores busy', type: 'scatter', symbol: 'diamond', symbolSize: 13, symbolOffset: [0, narrow(element) ? 18 : -18], z: 5,
      itemStyle: { color: theme.paper, borderColor: theme.ink, borderWidth: 1.5 }, data: cells.map(cell => [cell.cpu || 0, cell.name]),
    });
    return base({
      grid: { left: leftOf(element), right: 24, top: 10, bottom: 26 },
      tooltip: tooltip({ formatter: item => escaped(item.name || item.value[1]) + '<br>' + escaped(item.seriesName) + ' <b>' + percent(Array.isArray(item.value) ? item.value[0] : item.data.share) + '</b>' }),
      xAxis: axis({ type: 'value', min: 0, max: 1, label: { formatter: percent } }),
      yAxis: axis({ type: 'category', data: names, inverse: true, label, z: 5, splitLine: { show: false } }),
      series,
    });
  }

  // Figures over a swept value. The axis is drawn by places, so that the labels stand at the values alone.
  function sweep(index) {
    const { labels, at, curves } = data.sweeps[index];
    const places = labels.map((_, order) => (at ? Math.log2(at[order]) : order));
    const label = place => labels[places.findIndex(one => Math.abs(one - place) < 1e-6)] || '';
    const means = curves.flatMap(curve => curve.points.map(point => point.mean)).filter(mean => mean > 0);
    const log = means.length > 1 && Math.max(...means) > 30 * Math.min(...means);
    const margin = (Math.max(...places) - Math.min(...places)) / 30;
    const marked = (point, mark) => point.marks.some(name => name.startsWith(mark));
    const series = curves.flatMap((curve, order) => {
      const color = theme.series(order);
      const points = curve.points.map((point, value) => Object.assign({ value }, point)).filter(point => point.mean != null);
      const whiskers = points.filter(point => point.interval).flatMap(point => [
        [places[point.value], log ? Math.max(point.interval[0], point.mean / 30) : point.interval[0]], [places[point.value], point.interval[1]], [places[point.value], null],
      ]);
      return [
        { name: '', type: 'line', silent: true, color, symbol: 'rect', symbolSize: [9, 2], connectNulls: false, data: whiskers, lineStyle: { width: 1.5, opacity: 0.75 }, z: 2 },
        {
          name: curve.name, type: 'line', color, showAllSymbol: true, lineStyle: { width: 2.5, type: dashes[order % 4] }, z: 3,
          data: points.map(point => ({
            value: [places[point.value], point.mean], point, symbol: marked(point, 'knee') ? 'diamond' : 'circle',
            symbolSize: marked(point, 'peak') || marked(point, 'knee') ? 13 : 6,
          })),
        },
      ];
    });
    return base({
      grid: { left: 62, right: 24, top: 14, bottom: 42 },
      tooltip: tooltip({ formatter: item => escaped(item.seriesName) + ', ' + escaped(label(item.value[0])) + '<br><b>' + number(item.value[1]) + '</b>' +
        (item.data.point.interval ? ', ' + item.data.point.interval.map(number).join(' to ') : '') + (item.data.point.marks.length ? '<br>' + escaped(item.data.point.marks.join(', ')) : '') }),
      xAxis: axis({ type: 'value', min: Math.min(...places) - margin, max: Math.max(...places) + margin, axisTick: { show: false, customValues: places }, label: { customValues: places, formatter: label }, splitLine: { show: false } }),
      yAxis: axis(Object.assign({ label: { formatter: short } }, log ? { type: 'log' } : { type: 'value', min: 0 })),
      series,
    });
  }

  // A point stands in the middle of the seconds that it is of.
  const seconds = line => line.data.map((value, index) => [(index + 0.5) * line.step + 0.5, value]);
  // The events as vertical lines, of one cell or of all.
  function eventLines(cell) {
    const events = (data.events || []).filter(event => cell == null || event.cells.includes(cell));
    if (!events.length) { return []; }
    return [{
      name: 'events', type: 'line', data: [], silent: true, color: theme.ink,
      markLine: {
        silent: true, symbol: 'none', lineStyle: { color: theme.ink, width: 1, type: 'dashed', opacity: 0.8 },
        data: events.map(event => ({ xAxis: event.at_s, name: event.change, label: Object.assign(text(), { position: 'insideEndTop', formatter: '{b}', fontSize: 11, width: 124, overflow: 'truncate' }) })),
      },
    }];
  }
  function overTime(lines, options) {
    const longest = Math.max(2, ...lines.map(line => line.data.length * line.step));
    const format = options.format || (options.share ? percent : number);
    return base({
      grid: { left: 50, right: 12, top: 10, bottom: 24 },
      tooltip: tooltip({
        trigger: 'axis', formatter: items => 'second ' + Math.round(items[0].axisValue) + '<br>' +
          items.map(item => item.marker + escaped(item.seriesName) + ' <b>' + format(item.value[1]) + '</b>').join('<br>'),
      }),
      xAxis: axis({ type: 'value', min: 1, max: longest, splitLine: { show: false }, axisLine: { show: true, onZero: false, lineStyle: { color: theme.rule } }, label: { formatter: value => value + ' s' } }),
      yAxis: axis(Object.assign({ splitNumber: 3, label: { formatter: options.format || (options.share ? percent : short) } }, options.scale ? Object.assign({ type: 'value' }, options.scale) : options.share ? { type: 'value', min: 0, max: 1, interval: 0.25 } : options.log ? { type: 'log' } : { type: 'value', min: 0 })),
      series: lines.map(line => ({
        name: line.name, type: 'line', showSymbol: false, data: seconds(line), color: line.color, connectNulls: false,
        lineStyle: { width: line.width || 1.5, type: line.dash || 'solid', opacity: line.opacity || 1 },
      })).concat(eventLines(options.cell)),
    });
  }

  function trials(index) {
    const cell = cells[index];
    return () => overTime(cell.trials.map((trial, order) => ({
      name: 'trial ' + trial.trial, data: trial.per_s, step: cell.step_s, color: theme.series(index), opacity: 1 - 0.6 * order / Math.max(1, cell.trials.length), dash: dashes[(trial.trial - 1) % 4],
    })), { log: false, cell: index });
  }

  function panel(index) {
    const lines = cells.flatMap((cell, order) => cell.storages.map((storage, mount) => (
      { name: storage.name, data: storage.panels[index], step: cell.step_s, dash: dashes[(order + mount) % 4], order }))).filter(line => line.data.some(value => value != null));
    const means = lines.map(line => line.data.filter(value => value > 0)).filter(values => values.length).map(values => values.reduce((sum, value) => sum + value, 0) / values.length);
    const log = means.length > 1 && Math.max(...means) > 30 * Math.min(...means);
    lines.forEach(line => { if (log) { line.data = line.data.map(value => (value > 0 ? value : null)); } });
    return () => overTime(lines.map(line => Object.assign({ color: theme.series(line.order), width: 1.75 }, line)), { log, share: index === 7 });
  }

  const sizes = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  function bytes(value) {
    const exponent = Math.min(4, Math.floor(Math.log2(Math.max(1, value)) / 10));
    return three.format(value / 2 ** (10 * exponent)) + ' ' + sizes[exponent];
  }
  const finePercent = share => three.format(100 * share) + ' %';
  const formats = { bytes, share: finePercent };
  // Axes with round labels: sizes in powers of two, and shares near the whole, which would be a line at the top of an axis from zero.
  const firstFrom = (steps, least) => steps.find(step => step >= least) || least;
  const scales = {
    bytes(lowest, highest) {
      const unit = 1024 ** Math.floor(Math.log2(Math.max(1, highest)) / 10);
      const interval = unit * firstFrom([0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500], highest / unit / 3);
      return { min: 0, max: interval * Math.max(1, Math.ceil(highest / interval)), interval };
    },
    share(lowest) {
      if (!(lowest > 0.5)) { return null; }
      const interval = firstFrom([0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25], (1 - lowest) / 4);
      return { min: 1 - interval * Math.max(1, Math.ceil((1 - lowest) / interval)), max: 1, interval };
    },
  };

  // A chart of one trial alone: the server's counters, the machine, the kernel's counters.
  function detail(index, place) {
    const cell = cells[index];
    const { lines, unit } = cell.details.charts[place];
    const scale = scales[unit] && scales[unit](Math.min(...lines.map(line => line.lowest)), Math.max(...lines.map(line => line.highest)));
    return () => overTime(lines.map((line, order) => ({
      name: line.label, data: line.points, step: cell.step_s, color: theme.series(order), dash: dashes[order % 4],
    })), { format: formats[unit], scale, cell: index });
  }

  const drawings = [['throughput', throughput], ['latency', latency], ['bottlenecks', bottlenecks]];
  (data.sweeps || []).forEach((_, index) => drawings.push(['sweep-' + index, () => sweep(index)]));
  cells.forEach((_, index) => drawings.push(['time-' + index, trials(index)]));
  cells.forEach((cell, index) => (cell.details ? cell.details.charts : []).forEach((_, place) => drawings.push(['detail-' + index + '-' + place, detail(index, place)])));
  (cells[0] ? cells[0].storages[0].panels : []).forEach((_, index) => drawings.push(['emulator-' + index, panel(index)]));
  const charts = drawings.map(([name, option]) => ({ name, option, element: document.getElementById('chart-' + name), chart: null })).filter(item => item.element);

  // A chart as a file, with its title and the names of its lines, which stand beside it on the page.
  function drawing(item) {
    const heading = item.element.parentElement.querySelector('figcaption') || item.element.closest('section').querySelector('h2');
    const title = heading.textContent.trim();
    const option = item.option(item.element);
    const names = new Set([].concat(option.series).map(series => series.name).filter(Boolean));
    const top = 34 + (names.size > 1 ? 26 : 0);
    option.backgroundColor = theme.paper;
    option.title = { text: title, left: 8, top: 6, textStyle: { color: theme.ink, fontSize: 15, fontFamily: font() } };
    option.legend = { show: names.size > 1, type: 'plain', top: 32, left: 8, textStyle: text() };
    option.grid.top += top;
    const frame = document.createElement('div');
    frame.style.cssText = 'position: absolute; visibility: hidden; width: ' + item.element.clientWidth + 'px; height: ' + (item.element.clientHeight + top) + 'px';
    document.body.append(frame);
    const copy = echarts.init(frame, null, { renderer: 'svg' });
    copy.setOption(option);
    const result = { svg: copy.renderToSVGString(), width: copy.getWidth(), height: copy.getHeight() };
    copy.dispose();
    frame.remove();
    return result;
  }
  function save(item, kind) {
    const { svg, width, height } = drawing(item);
    const address = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(svg);
    const give = href => Object.assign(document.createElement('a'), { href, download: 'spindle-' + item.name + '.' + kind }).click();
    if (kind === 'svg') { give(address); return; }
    const picture = new Image();
    picture.onload = () => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 2 * width, height: 2 * height });
      canvas.getContext('2d').drawImage(picture, 0, 0, 2 * width, 2 * height);
      give(canvas.toDataURL('image/png'));
    };
    picture.src = address;
  }
  function offer(item) {
    const bar = document.createElement('p');
    bar.className = 'export';
    ['svg', 'png'].forEach(kind => {
      const button = Object.assign(document.createElement('button'), { type: 'button', textContent: kind.toUpperCase(), title: 'save this chart as ' + kind.toUpperCase() });
      button.addEventListener('click', () => save(item, kind));
      bar.append(button);
    });
    item.element.after(bar);
  }

  function drawOne(item) {
    if (!item.chart) { item.chart = echarts.init(item.element, null, { renderer: 'svg' }); offer(item); }
    item.chart.resize();
    item.chart.setOption(item.option(item.element), true);
  }
  // What is in view is drawn first and the rest in pauses, so that a long page answers at once. What is folded waits until it is opened.
  let left = [];
  let pausing = 0;
  const isOpen = item => !item.element.closest('details:not([open])');
  function isInView(item) {
    const box = item.element.getBoundingClientRect();
    return box.bottom > -200 && box.top < innerHeight + 200;
  }
  function go() {
    const begun = performance.now();
    while (left.length && performance.now() - begun < 25) { drawOne(left.shift()); }
    clearTimeout(pausing);
    if (left.length) { pausing = setTimeout(go, 5); }
    document.documentElement.classList.toggle('complete', !left.length);
  }
  function draw() {
    readTheme();
    const open = charts.filter(isOpen);
    open.filter(isInView).forEach(drawOne);
    left = open.filter(item => !isInView(item));
    go();
  }
  function drawAll() {
    readTheme();
    left = [];
    charts.filter(isOpen).forEach(drawOne);
    go();
  }
  draw();
  // Says where a table is wider than its place.
  function hint() {
    document.querySelectorAll('.scroll').forEach(box => box.classList.toggle('scrolls', box.scrollWidth > box.clientWidth + 1));
  }
  hint();
  document.querySelectorAll('details').forEach(details => details.addEventListener('toggle', () => {
    hint();
    if (details.open) {
      left = left.concat(charts.filter(item => !item.chart && details.contains(item.element) && isOpen(item) && !left.includes(item)));
      go();
    }
  }));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  matchMedia('print').addEventListener('change', drawAll);
  addEventListener('beforeprint', () => { document.querySelectorAll('details').forEach(details => { details.open = true; }); drawAll(); });
  addEventListener('afterprint', draw);
  let waiting = 0;
  addEventListener('resize', () => { clearTimeout(waiting); waiting = setTimeout(() => { draw(); hint(); }, 60); });
})();
