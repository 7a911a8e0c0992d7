import { MONGODB_URL } from '../helpers/mongodb.ts'
import { cutRepeatedly } from '../lib/store/mongo/cuts.ts'

/** The long test: two hundred cuts. Resolves to a line of figures. */
export async function run (cuts = 200): Promise<string> {
  if (MONGODB_URL === undefined) return 'MongoDB cuts: skipped, MONGODB_URL is not set'
  const { lost, missing, acknowledged, slowest, replaced } = await cutRepeatedly(MONGODB_URL, cuts)
  const figures = `MongoDB: ${cuts} cuts, slowest recovery ${Math.round(slowest)} ms, client replaced ${replaced} times, ${acknowledged} acknowledged writes`
  if (lost.length > 0 || missing.length > 0) throw new Error(`${figures}; not recovered: ${lost.join(', ')}; ${missing.length} writes lost: ${missing.slice(0, 5).join(', ')}`)
  return `${figures}, all there`
}

if (import.meta.main) console.log(await run(Number(process.argv[2] ?? 200)))
