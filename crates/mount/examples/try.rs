use std::path::PathBuf;
use spindle_model::*;
use spindle_mount::*;
use std::collections::BinaryHeap; use std::cmp::Reverse;
// null, or fixed-latency channels
struct D { size: u64, ns: u64, busy: Vec<u64>, q: BinaryHeap<Reverse<(Instant,u64)>>, }
impl Device for D {
  fn size_bytes(&self)->u64{self.size}
  fn submit(&mut self, now: Instant, r: Request){ let i=(0..self.busy.len()).min_by_key(|&i| self.busy[i]).unwrap(); let s=self.busy[i].max(now.0)+ if r.size_bytes==0 {0} else {self.ns}; self.busy[i]=s; self.q.push(Reverse((Instant(s),r.id.0))); }
  fn poll_at(&self)->Option<Instant>{ self.q.peek().map(|r| r.0.0) }
  fn poll(&mut self, now: Instant)->Option<Completion>{ let &Reverse((at,id))=self.q.peek()?; if at<=now { self.q.pop(); Some(Completion{id:RequestId(id),at,outcome:Outcome::Success}) } else {None} }
  fn power_cut(&mut self,_:Instant)->PowerCut{PowerCut::default()}
  fn counters(&self)->Counters{Counters::default()}
}
fn main() -> anyhow::Result<()> {
  let a: Vec<String> = std::env::args().collect();
  if a.len()>3 && a[1]=="disk" && a[2]=="serve" {
    let o: DiskOptions = serde_json::from_slice(&std::fs::read(PathBuf::from(&a[3]).join("disk.json"))?)?;
    let v: Vec<u64> = o.stack.split(',').map(|x| x.parse().unwrap()).collect();
    return serve(Box::new(D{size:o.serve.size_bytes, ns:v[0], busy: vec![0; v[1] as usize], q: BinaryHeap::new()}), &o.serve);
  }
  if a[1]=="down" { return disk::down(&a[2]); }
  let name=a[2].clone();
  let state=disk::state_directory(&name)?;
  let d=Disk::up(&std::env::current_exe()?, &DiskOptions{name, stack:a[3].clone(), seed:1, rotational:false, volatile_cache:true, file_system: if a[4]=="xfs" {FileSystem::Xfs} else {FileSystem::None}, mount_at:None, physics:true, serve: ServeOptions{state_directory:state.clone(), size_bytes: 4<<30, base: a.get(5).map(PathBuf::from), memory_budget_bytes: 8<<30, spill_directory:"/tmp".into(), die_with_parent:false}})?;
  println!("{:?} {:?}", d.device, d.mount);
  let mut d=d; println!("{:?}", d.statistics()?.floor);
  d.leave_up(); Ok(())
}
