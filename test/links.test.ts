import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'
import { listDocs, readDoc } from './helpers/docs.ts'

const ROOT = join(import.meta.dirname, '..')

/** The files of the published package. Scripts are off, as they would build it. */
function listPublished (): string[] {
  const out = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  const [{ files }] = JSON.parse(out) as [{ files: { path: string }[] }]
  return files.map(({ path }) => path)
}

const withoutCode = (text: string) => text.replace(/^```.*?^```$/gms, '')

/** The anchors of a page, as GitHub and npm make them from its headings. */
function listAnchors (text: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of withoutCode(text).matchAll(/^#+ (.*)$/gm)) {
    const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, '')
    const anchor = words.replaceAll(' ', '-')
    let unique = anchor
    for (let count = 1; anchors.has(unique); count++) unique = `${anchor}-${count}`
    anchors.add(unique)
  }
  return anchors
}

function listLinks (text: string): string[] {
  return [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
}

t.test('every relative link leads to a file and an anchor, in the published package too', async (t) => {
  const published = listPublished()
  t.ok(published.includes('docs/README.md') && published.includes('examples/README.md'))
  const pages = listDocs()
  t.ok(pages.length > 20)
  let count = 0
  for (const page of pages) {
    t.ok(published.includes(page), `${page} is published`)
    for (const link of listLinks(readDoc(page))) {
      if (/^[a-z]+:/.test(link)) continue
      count++
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path))
      if (!existsSync(join(ROOT, target))) {
        t.fail(`${page}: ${link} leads nowhere`)
        continue
      }
      const isFolder = statSync(join(ROOT, target)).isDirectory()
      t.ok(published.some((file) => isFolder ? file.startsWith(`${target}/`) : file === target), `${page}: ${link} is published`)
      if (anchor !== undefined) t.ok(listAnchors(readDoc(target)).has(anchor), `${page}: ${link} has its anchor`)
    }
  }
  t.ok(count > 100, `${count} links`)
})

t.test('the index lists every page', async (t) => {
  const index = readDoc('docs/README.md')
  for (const page of listDocs().filter((path) => path.startsWith('docs/') && path !== 'docs/README.md')) {
    t.ok(index.includes(`](${page.slice('docs/'.length)})`), page)
  }
})
