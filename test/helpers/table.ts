/** The rows of the Markdown table whose heading begins with these cells, as cells without their code marks. */
export function parseTable (text: string, ...heading: string[]): string[][] {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`| ${heading.join(' | ')} |`))
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'))
  return lines.slice(start + 2, end).map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim().replaceAll('`', '')))
}
